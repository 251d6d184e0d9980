package routing

import (
	"cmp"
	"strings"
)

// linkOwners maps each linked id, in lower case, to its person. A link is channel:id, or a bare id
// for every channel. Codes: Invalid when two persons claim an id.
func linkOwners(links map[string][]string) (map[string]string, error) {
	owners := map[string]string{}
	for name, ids := range links {
		name = strings.ToLower(strings.TrimSpace(name))
		for _, id := range ids {
			id = strings.ToLower(strings.TrimSpace(id))
			if other, taken := owners[id]; taken && other != name {
				return nil, claimedTwice(id, other, name)
			}
			owners[id] = name
		}
	}
	return owners, nil
}

// personOf returns the name behind a peer's id; "" when no person claims it. Codes: Invalid when
// two persons claim it, one by the bare id and one by channel:id.
func personOf(links map[string][]string, channel, peer string) (string, error) {
	owners, err := linkOwners(links)
	if err != nil {
		return "", err
	}
	bare, full := owners[peer], owners[channel+":"+peer]
	if bare != "" && full != "" && bare != full {
		return "", claimedTwice(peer, bare, full)
	}
	return cmp.Or(full, bare), nil
}

func claimedTwice(id, a, b string) error {
	return invalid("identity_links", "%s is claimed by both %s and %s: it can belong to one person only", clip(id),
		min(a, b), max(a, b))
}
