package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

const maxDays = 36_500 // a century

// check rejects invalid settings. Its errors name the key and the origin of its value.
func (c *Config) check(origins map[string]string) error {
	fail := func(key, format string, args ...any) error {
		message := fmt.Sprintf(format, args...)
		return session.Errorf(session.Invalid, "%s %s%s", key, message, fromOrigin(origins, key)).At(key, "%s", message)
	}
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil || c.Timezone == "" {
		return fail("timezone", "is %q, which is not a time zone; use Local, UTC or a name like Europe/Berlin", c.Timezone)
	}
	c.zone = zone
	if c.SQLDB != "" && !engine.IsPostgres(c.SQLDB) {
		return fail("sql_db", "is not an address of PostgreSQL, postgres://USER@HOST/DATABASE")
	}
	if err := CheckListen(c.Listen); err != nil {
		return fail("listen", "%s", err.Error())
	}
	if !filepath.IsAbs(c.Socket) && c.Socket != SocketOff {
		return fail("socket", "is %q; use an absolute path, or off", c.Socket)
	}
	for _, folder := range c.ExcludeProjects {
		if !filepath.IsAbs(folder) {
			return fail("exclude_projects", "has %q; use absolute folders, like /home/ana/private", folder)
		}
	}
	for _, choice := range []struct {
		key, value string
		allowed    []string
	}{
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"auto", "console", "json"}},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			return fail(choice.key, "is %q; use one of %s", choice.value, strings.Join(choice.allowed, ", "))
		}
	}
	if err := c.Summarizer.check("summarizer", fail); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Summarizers)) {
		named := c.Summarizers[name]
		named.Timeout = cmp.Or(named.Timeout, c.Summarizer.Timeout)
		if err := named.check("summarizers."+name, fail); err != nil {
			return err
		}
		c.Summarizers[name] = named
	}
	if name := c.Compaction.Summarizer; name != nil && *name != "" {
		if _, configured := c.Summarizers[*name]; !configured {
			return fail("compaction.summarizer", "is %q, which is not below summarizers", *name)
		}
	}
	switch {
	case c.Backup.Every < 0:
		return fail("backup.every", "is %s; use a duration like 24h, or 0s for never", c.Backup.Every)
	case c.Backup.Keep < 1:
		return fail("backup.keep", "is %d; keep at least one backup", c.Backup.Keep)
	case c.Scrub.AtHour != nil && (*c.Scrub.AtHour < 0 || *c.Scrub.AtHour > 23):
		return fail("scrub.at_hour", "is %d; use an hour from 0 to 23, or null", *c.Scrub.AtHour)
	case c.Retention.AtHour < 0 || c.Retention.AtHour > 23:
		return fail("retention.at_hour", "is %d; use an hour from 0 to 23", c.Retention.AtHour)
	case c.Flush.SoftTokens != nil && (*c.Flush.SoftTokens < 0 || *c.Flush.SoftTokens > 1<<40):
		return fail("flush.soft_tokens", "is %d; use a number of tokens, 0 or more", *c.Flush.SoftTokens)
	}
	if !isSum(c.Budget.Month) {
		return fail("budget.month", "is %g; use US dollars, or 0 for none", c.Budget.Month)
	}
	for project, limit := range c.Budget.Project {
		switch {
		case limit == 0, !isSum(limit):
			return fail("budget.project", "has %g for %s; use US dollars above 0", limit, project)
		case project == "":
			return fail("budget.project", "has a project without a name; use its path, its name in lists, or the end of "+
				"its path")
		}
	}
	if hook := c.Budget.Webhook; hook != "" && !isWeb(hook) {
		return fail("budget.webhook", "is not an address; use one like https://example.com/notices")
	}
	if e := c.OTLP.Endpoint; e != "" && !isWeb(e) {
		return fail("otlp.endpoint", "is not an address; use one like http://127.0.0.1:4318")
	}
	if content := c.OTLP.Content; content != "on" && content != "off" {
		return fail("otlp.content", "is %q; use on or off", content)
	}
	for _, age := range []struct {
		key  string
		days int
	}{
		{"idle_days", c.Retention.IdleDays},
		{"trash_days", c.Retention.TrashDays},
		{"events_days", c.Retention.EventsDays},
	} {
		if age.days < 0 || age.days > maxDays {
			return fail("retention."+age.key, "is %d; use a number of days, or 0 for never", age.days)
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

// isWeb reports whether a text is an address of HTTP.
func isWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// check validates a summarizer, and completes it: an empty provider, as a container's environment has it, is the
// default. fail makes the error of a key.
func (s *Summarizer) check(key string, fail func(key, format string, args ...any) error) error {
	providers := []string{"extractive", "gemini", "openai"}
	s.Provider = cmp.Or(s.Provider, providers[0])
	if !slices.Contains(providers, s.Provider) {
		return fail(key+".provider", "is %q; use one of %s", s.Provider, strings.Join(providers, ", "))
	}
	if u := s.BaseURL; u != "" {
		if parsed, err := url.Parse(u); err != nil || parsed.Host == "" ||
			(parsed.Scheme != "http" && parsed.Scheme != "https") {
			return fail(key+".base_url", "is not an http or https address")
		}
	}
	if s.Timeout <= 0 {
		return fail(key+".timeout", "is %s; use a duration above zero, like 60s", s.Timeout)
	}
	return nil
}

// CheckListen checks an address to listen on: "" or host:port.
func CheckListen(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("is %q; use host:port like 127.0.0.1:7433, or nothing for no port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("is %q; use a port from 0 to 65535", address)
	}
	return nil
}

// Loopback reports whether only this host can reach an address to listen on.
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

// isSum says whether a number can be a sum of money: YAML has numbers that cannot, .inf and .nan.
func isSum(dollars float64) bool { return dollars >= 0 && !math.IsInf(dollars, 1) }

// explainDecode returns an error that names the key with a value of the wrong type.
func explainDecode(err error, known []string, origins map[string]string) error {
	var bad *mapstructure.DecodeError
	if !errors.As(err, &bad) {
		return session.Errorf(session.Invalid, "invalid configuration: %w", err)
	}
	key := strings.NewReplacer("[", ".", "]", "").Replace(bad.Name()) // by_type[group] is by_type.group
	if i := slices.IndexFunc(known, func(k string) bool { return matchName(k, key) }); i >= 0 {
		key = known[i]
	}
	why := bad.Unwrap()
	var parse *mapstructure.ParseError
	if errors.As(why, &parse) && parse.Expected.CanFloat() { // its text has names of Go's types and functions
		why = fmt.Errorf("%q is no number", fmt.Sprint(parse.Value))
	}
	return session.Errorf(session.Invalid, "%s has an invalid value%s: %w", key, fromOrigin(origins, key), why).
		At(key, "wrong type of value")
}

// fromOrigin returns the origin of a key's value for an error, also of a key below a free-form one; ""
// for a default.
func fromOrigin(origins map[string]string, key string) string {
	for _, prefix := range freeForm {
		if strings.HasPrefix(key, prefix+".") {
			key = prefix
		}
	}
	if origins[key] == "" {
		return ""
	}
	return " (from " + origins[key] + ")"
}
