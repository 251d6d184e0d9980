package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"

	"sessiond/internal/session"
)

const maxDays = 36_500 // a century

// check refuses what cannot be used, naming the key and where its value came from.
func (c *Config) check(origins map[string]string) error {
	fail := func(key, format string, args ...any) error {
		from := ""
		if origin := origins[key]; origin != "" {
			from = " (from " + origin + ")"
		}
		message := fmt.Sprintf(format, args...)
		return session.Errorf(session.Invalid, "%s %s%s", key, message, from).At(key, "%s", message)
	}
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil || c.Timezone == "" {
		return fail("timezone", "is %q, which is no time zone: give Local, UTC or a name like Europe/Berlin", c.Timezone)
	}
	c.zone = zone
	if err := CheckListen(c.Listen); err != nil {
		return fail("listen", "%s", err.Error())
	}
	if !filepath.IsAbs(c.Socket) && c.Socket != SocketOff {
		return fail("socket", "is %q: give an absolute path, or off", c.Socket)
	}
	for _, choice := range []struct {
		key, value string
		allowed    []string
	}{
		{"summarizer.provider", c.Summarizer.Provider, []string{"extractive", "gemini", "openai"}},
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"auto", "console", "json"}},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			return fail(choice.key, "is %q: it is one of %s", choice.value, strings.Join(choice.allowed, ", "))
		}
	}
	if u := c.Summarizer.BaseURL; u != "" {
		if parsed, err := url.Parse(u); err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
			return fail("summarizer.base_url", "is no http or https address")
		}
	}
	switch {
	case c.Summarizer.Timeout <= 0:
		return fail("summarizer.timeout", "is %s: it must be longer than zero, like 60s", c.Summarizer.Timeout)
	case c.Backup.Every < 0:
		return fail("backup.every", "is %s: it is a duration like 24h, or 0s for never", c.Backup.Every)
	case c.Backup.Keep < 1:
		return fail("backup.keep", "is %d: at least one backup is kept", c.Backup.Keep)
	case c.Scrub.AtHour != nil && (*c.Scrub.AtHour < 0 || *c.Scrub.AtHour > 23):
		return fail("scrub.at_hour", "is %d: it is an hour from 0 to 23, or null", *c.Scrub.AtHour)
	case c.Retention.AtHour < 0 || c.Retention.AtHour > 23:
		return fail("retention.at_hour", "is %d: it is an hour from 0 to 23", c.Retention.AtHour)
	case c.Flush.SoftTokens != nil && (*c.Flush.SoftTokens < 0 || *c.Flush.SoftTokens > 1<<40):
		return fail("flush.soft_tokens", "is %d: it is a number of tokens, 0 or more", *c.Flush.SoftTokens)
	}
	for _, age := range []struct {
		key  string
		days int
	}{{"idle_days", c.Retention.IdleDays}, {"trash_days", c.Retention.TrashDays}, {"events_days", c.Retention.EventsDays}} {
		if age.days < 0 || age.days > maxDays {
			return fail("retention."+age.key, "is %d: it is a number of days, or 0 for never", age.days)
		}
	}
	var bad *session.Error
	if err := c.checkRouting(); errors.As(err, &bad) && len(bad.Fields) > 0 {
		return fail(bad.Fields[0].Path, "%s", bad.Fields[0].Message)
	}
	if err := c.Compaction.Check(); errors.As(err, &bad) && len(bad.Fields) > 0 {
		return fail("compaction."+bad.Fields[0].Path, "%s", bad.Fields[0].Message)
	}
	return nil
}

// CheckListen says whether an address can be listened on: "" or host:port with a host that
// is an address or a name.
func CheckListen(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("is %q: it is host:port like 127.0.0.1:7433, or empty for none", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("is %q: its port is a number from 0 to 65535", address)
	}
	return nil
}

// Loopback tells whether an address to listen on can be reached from this host only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// explainDecode says which key has a value of the wrong type, without the decoder's words.
func explainDecode(err error, origins map[string]string) error {
	var bad *mapstructure.DecodeError
	if !errors.As(err, &bad) {
		return session.Errorf(session.Invalid, "the configuration cannot be used: %w", err)
	}
	key := strings.ToLower(bad.Name())
	from := ""
	if origin := origins[key]; origin != "" {
		from = " (from " + origin + ")"
	}
	return session.Errorf(session.Invalid, "%s has a value that cannot be used%s: %w", key, from, bad.Unwrap()).
		At(key, "wrong type of value")
}
