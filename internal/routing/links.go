package routing

import "strings"

// person gives the name behind a peer's id; "" when nobody claims it. A link is channel:id, or
// a bare id for every channel; case does not matter. Codes: Invalid when two claim it.
func person(links map[string][]string, channel, peer string) (string, error) {
	found := ""
	for name, ids := range links {
		name = strings.ToLower(strings.TrimSpace(name))
		for _, id := range ids {
			id = strings.ToLower(strings.TrimSpace(id))
			if id == "" || name == "" || id != peer && id != channel+":"+peer {
				continue
			}
			if found != "" && found != name {
				return "", claimedTwice(id, found, name)
			}
			found = name
		}
	}
	return found, nil
}

// checkLinks refuses an id that two persons claim. Codes: Invalid.
func checkLinks(links map[string][]string) error {
	owner := map[string]string{}
	for name, ids := range links {
		name = strings.ToLower(strings.TrimSpace(name))
		for _, id := range ids {
			id = strings.ToLower(strings.TrimSpace(id))
			if other, taken := owner[id]; taken && other != name {
				return claimedTwice(id, other, name)
			}
			owner[id] = name
		}
	}
	return nil
}

func claimedTwice(id, a, b string) error {
	if b < a {
		a, b = b, a
	}
	return invalid("identity_links", "%s is claimed by both %s and %s: it can belong to one person only", clip(id), a, b)
}
