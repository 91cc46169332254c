package console

import (
	"net/http"
	"strings"

	"github.com/diegosdk/diego/httpapi"
)

// A caller is who looks at the console.
type caller struct {
	httpapi.Identity
	// login is "certificate", "link", or "open" where nobody is asked.
	login string
}

// callerOf says who asks. It fails with a *httpapi.ForbiddenError for a caller
// without a certificate.
func (c *console) callerOf(r *http.Request) (caller, error) {
	if c.Caller != nil {
		return caller{*c.Caller, "link"}, nil
	}
	if c.Calls.AllowPlain && r.TLS == nil {
		return caller{login: "open"}, nil
	}
	if id, ok := httpapi.CallerOf(r); ok {
		return caller{id, "certificate"}, nil
	}
	return caller{}, &httpapi.ForbiddenError{Call: r.URL.Path, Why: "the browser has shown no certificate that the server verifies: " +
		"import one into it, or run `diegoctl console`, which prints a link"}
}

// may reports whether the caller may make a call, by its path below /v1/.
func (who caller) may(path string) bool {
	for _, call := range httpapi.Calls() {
		if call.Path == "/v1/"+path {
			return who.login == "open" || who.May(call)
		}
	}
	return false
}

// admit fails unless the caller may make the call with that path.
func (c *console) admit(r *http.Request, path string) (caller, error) {
	who, err := c.callerOf(r)
	if err != nil || who.may(path) {
		return who, err
	}
	return who, &httpapi.ForbiddenError{Name: who.Name, Call: path, Why: "the roles of the certificate do not allow it; docs/api.md says which do"}
}

// reading serves h to callers who may list what should run.
func (c *console) reading(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := c.admit(r, "bbs/scheduling_infos"); err != nil {
			httpapi.WriteProblem(w, err)
			return
		}
		h(w, r)
	}
}

// whoami tells the page who its user is, and which calls to offer.
func (c *console) whoami(w http.ResponseWriter, r *http.Request) {
	who, err := c.callerOf(r)
	if err != nil {
		httpapi.WriteProblem(w, err)
		return
	}
	may := []string{}
	for _, call := range httpapi.Calls() {
		if path := strings.TrimPrefix(call.Path, "/v1/"); who.may(path) && (call.Service != "auctioneer" || c.Calls.Auctioneer != nil) {
			may = append(may, path)
		}
	}
	answer(w, struct {
		Name  string         `json:"name"`
		Roles []httpapi.Role `json:"roles"`
		May   []string       `json:"may"`
		Login string         `json:"login"`
	}{who.Name, who.Roles, may, who.login})
}
