package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"sessiond/internal/session"
)

// Limits of the doors for browsers.
const (
	loginTime   = 12 * time.Hour
	linkTime    = time.Minute
	mostLogins  = 100
	cookieName  = "sessiond"
	formField   = "form_token"
	longestForm = 64 << 10
)

// browsers are those that are logged in, and the links that log one in. All are forgotten at a stop.
type browsers struct {
	mu     sync.Mutex
	key    [32]byte // of form tokens
	logins map[[sha256.Size]byte]time.Time
	links  map[[sha256.Size]byte]time.Time
	now    func() time.Time
}

func newBrowsers() *browsers {
	b := &browsers{logins: map[[sha256.Size]byte]time.Time{}, links: map[[sha256.Size]byte]time.Time{}, now: time.Now}
	_, _ = rand.Read(b.key[:]) // never fails
	return b
}

// add remembers a new secret until it ends, and returns it. Where there are too many the one that ends first goes.
func (b *browsers) add(to map[[sha256.Size]byte]time.Time, lasts time.Duration) string {
	secret := rand.Text()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	var first [sha256.Size]byte
	for sum, end := range to {
		if !end.After(now) {
			delete(to, sum)
		} else if at, ok := to[first]; !ok || end.Before(at) {
			first = sum
		}
	}
	if len(to) >= mostLogins {
		delete(to, first)
	}
	to[sha256.Sum256([]byte(secret))] = now.Add(lasts)
	return secret
}

// Link returns a code that logs one browser in, within a minute.
func (g *Guard) Link() string { return g.browsers.add(g.browsers.links, linkTime) }

// Redeem logs a browser in by the code of a link. Codes: Unauthorized.
func (g *Guard) Redeem(w http.ResponseWriter, code string) error {
	b := g.browsers
	sum := sha256.Sum256([]byte(code))
	b.mu.Lock()
	end, known := b.links[sum]
	delete(b.links, sum)
	b.mu.Unlock()
	if !known || !end.After(b.now()) {
		return session.Errorf(session.Unauthorized,
			"this link is used up or older than a minute: `sessiond open` makes a new one")
	}
	g.setCookie(w)
	return nil
}

// Login logs a browser in by the owner's token. Codes: Unauthorized.
func (g *Guard) Login(w http.ResponseWriter, token string) error {
	if !g.isToken(token) {
		return session.Errorf(session.Unauthorized, "the token is wrong: `sessiond token` prints the right one")
	}
	g.setCookie(w)
	return nil
}

func (g *Guard) setCookie(w http.ResponseWriter) {
	secret := g.browsers.add(g.browsers.logins, loginTime)
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(loginTime.Seconds()),
	})
}

// Logout forgets the browser of a request.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		g.browsers.mu.Lock()
		delete(g.browsers.logins, sha256.Sum256([]byte(c.Value)))
		g.browsers.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: -1,
	})
}

// isLoggedIn reports whether the cookie of a request is that of a login.
func (g *Guard) isLoggedIn(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	g.browsers.mu.Lock()
	defer g.browsers.mu.Unlock()
	return g.browsers.logins[sha256.Sum256([]byte(c.Value))].After(g.browsers.now())
}

// FormToken returns what the forms of a page carry, so that no other page can send them.
func (g *Guard) FormToken(r *http.Request) string {
	value := ""
	if c, err := r.Cookie(cookieName); err == nil {
		value = c.Value
	}
	mac := hmac.New(sha256.New, g.browsers.key[:])
	_, _ = mac.Write([]byte(value))
	return hex.EncodeToString(mac.Sum(nil))
}

// checkForm rejects a form that no page of the daemon made for this browser. Codes: Forbidden.
func (g *Guard) checkForm(r *http.Request) error {
	if subtle.ConstantTimeCompare([]byte(r.PostFormValue(formField)), []byte(g.FormToken(r))) != 1 {
		return session.Errorf(session.Forbidden,
			"the form is from before the daemon's last start or this login: reload the page and try again")
	}
	return nil
}
