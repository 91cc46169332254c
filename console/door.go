package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Door lets one browser in, through a link that works once. What it shows is
// behind a path that nobody else knows: browsers send cookies to every port of a
// host, but not to other paths, so that another user's server on this host does
// not get the one that lets in.
//
// All methods may be called at the same time.
type Door struct {
	inside http.Handler
	hosts  []string
	path   string // "/", a secret, "/"
	now    func() time.Time

	mu     sync.Mutex
	token  string // "" once it was used
	issued time.Time
	cookie string // "" until then
	since  time.Time
}

const (
	// linkTime is how long a link works, and stayTime how long the browser may
	// stay.
	linkTime = 5 * time.Minute
	stayTime = 12 * time.Hour

	cookieName = "diego-console"
)

// NewDoor makes a door to what a handler serves, usually that of [New], at an
// address of this host, for example "127.0.0.1:40613".
func NewDoor(inside http.Handler, address string) *Door {
	d := &Door{inside: inside, hosts: []string{address}, path: "/" + rand.Text() + "/", token: rand.Text(), now: time.Now}
	if _, port, err := net.SplitHostPort(address); err == nil {
		d.hosts = append(d.hosts, "localhost:"+port)
	}
	d.issued = d.now()
	return d
}

// Link is what to open in the browser. It works once, within 5 min; the browser
// may stay for 12 h.
func (d *Door) Link() string { return "http://" + d.hosts[0] + d.path + "enter?token=" + d.token }

// ServeHTTP implements [http.Handler].
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := false
	for _, host := range d.hosts {
		known = known || r.Host == host
	}
	switch {
	case !known:
		protect(w.Header())
		http.Error(w, "this server is "+d.hosts[0]+" and has no other name", http.StatusMisdirectedRequest)
	case !strings.HasPrefix(r.URL.Path, d.path):
		protect(w.Header())
		http.Error(w, "there is nothing here; `diegoctl console` prints a link", http.StatusNotFound)
	case r.URL.Path == d.path+"enter":
		protect(w.Header())
		d.enter(w, r)
	default:
		http.StripPrefix(strings.TrimSuffix(d.path, "/"), http.HandlerFunc(d.look)).ServeHTTP(w, r)
	}
}

// enter turns the token into a cookie.
func (d *Door) enter(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	switch {
	case d.isInside(r, now): // the link again, in the same browser
	case r.Method == http.MethodGet && d.token != "" && now.Sub(d.issued) <= linkTime && same(r.URL.Query().Get("token"), d.token):
		d.token, d.cookie, d.since = "", rand.Text(), now
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: d.cookie, Path: d.path, MaxAge: int(stayTime / time.Second),
			HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	default:
		http.Error(w, "this link has been used, or is older than 5 minutes; run `diegoctl console` again", http.StatusForbidden)
		return
	}
	http.Redirect(w, r, d.path+"console/", http.StatusSeeOther)
}

// look serves pages to all, because they hold no secret, and calls to the one
// who is inside.
func (d *Door) look(w http.ResponseWriter, r *http.Request) {
	if !isPage(r) {
		d.mu.Lock()
		inside, until := d.isInside(r, d.now()), d.since.Add(stayTime)
		d.mu.Unlock()
		// A browser says from where a page asks; other programs have to say that
		// they are our page.
		from := r.Header.Get("Sec-Fetch-Site")
		switch {
		case !inside:
			refuse(w, r, "this browser is not logged in; run `diegoctl console`, which prints a link")
			return
		case from != "same-origin" && (from != "" || r.Header.Get("Diego-Console") == ""):
			refuse(w, r, "it was not the console that asked")
			return
		}
		// What is followed ends with the stay, too.
		ctx, cancel := context.WithDeadline(r.Context(), until)
		defer cancel()
		r = r.WithContext(ctx)
	}
	r.Header.Del("Cookie")
	d.inside.ServeHTTP(w, r)
}

// isInside reports whether the request has the cookie. d.mu is held.
func (d *Door) isInside(r *http.Request, now time.Time) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && d.cookie != "" && now.Sub(d.since) < stayTime && same(cookie.Value, d.cookie)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
