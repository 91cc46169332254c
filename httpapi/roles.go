package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/diegosdk/diego/internal/wire"
)

// A Role says what a caller may do. It is an organizational unit (OU) of the
// caller's certificate: "diego-" and the role, for example "diego-cell". A
// certificate may have several.
type Role string

// The roles.
const (
	// ConsumerRole desires, reads and follows.
	ConsumerRole Role = "consumer"
	// CellRole reads and reports, as the cell whose id is the certificate's
	// common name.
	CellRole Role = "cell"
	// AuctioneerRole places work on cells and reports failures.
	AuctioneerRole Role = "auctioneer"
	// BBSRole requests placement and has work stopped. For an operator at the
	// console, it also asks for plans and makes an operator's calls of cells.
	BBSRole Role = "bbs"
	// OperatorRole does what a consumer does, plans, converges, drains cells,
	// reads logs, works in containers, and uses all locks.
	OperatorRole Role = "operator"
	// LogReaderRole reads the logs of containers of its certificate's domains.
	LogReaderRole Role = "log-reader"
	// ExecRole runs programs in containers of its certificate's domains, and copies
	// files into them and out of them.
	ExecRole Role = "exec"
	// LockerRole holds the locks that its certificate names, and reads them.
	LockerRole Role = "locker"
)

// Roles lists all roles.
var Roles = []Role{ConsumerRole, CellRole, AuctioneerRole, BBSRole, OperatorRole, LogReaderRole, ExecRole, LockerRole}

// An Identity is the caller, according to its certificate.
type Identity struct {
	// Name is the certificate's common name; a cell's is its id.
	Name  string
	Roles []Role
	// Domains are those that a log reader may read, and in whose containers the
	// role exec works, from the organizational units "diego-domain:" and the domain,
	// for example "diego-domain:apps".
	Domains []string `json:",omitempty"`
	// Locks are the names of the locks that a locker may hold, from the
	// organizational units "diego-lock:" and the name, for example
	// "diego-lock:router/zone-1".
	Locks []string `json:",omitempty"`
}

const (
	// rolePrefix begins the organizational units that are roles.
	rolePrefix = "diego-"
	// domainPrefix begins those that are domains.
	domainPrefix = "diego-domain:"
	// lockPrefix begins those that are names of locks.
	lockPrefix = "diego-lock:"
)

// IdentityOf reads a verified certificate. It ignores organizational units that
// are neither roles, domains nor names of locks.
func IdentityOf(certificate *x509.Certificate) Identity {
	id := Identity{Name: certificate.Subject.CommonName}
	for _, unit := range certificate.Subject.OrganizationalUnit {
		if domain, ok := strings.CutPrefix(unit, domainPrefix); ok {
			if domain != "" && !slices.Contains(id.Domains, domain) {
				id.Domains = append(id.Domains, domain)
			}
			continue
		}
		if lock, ok := strings.CutPrefix(unit, lockPrefix); ok {
			if lock != "" && !slices.Contains(id.Locks, lock) {
				id.Locks = append(id.Locks, lock)
			}
			continue
		}
		name, ok := strings.CutPrefix(unit, rolePrefix)
		if role := Role(name); ok && slices.Contains(Roles, role) && !slices.Contains(id.Roles, role) {
			id.Roles = append(id.Roles, role)
		}
	}
	return id
}

// CallerOf returns who makes a request, and false if the server has not verified
// a certificate of the client.
func CallerOf(r *http.Request) (Identity, bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.PeerCertificates) == 0 {
		return Identity{}, false
	}
	return IdentityOf(r.TLS.PeerCertificates[0]), true
}

// May reports whether one of the roles admits the caller to a call.
func (id Identity) May(c CallInfo) bool {
	return slices.ContainsFunc(id.Roles, func(role Role) bool { return slices.Contains(c.Roles, role) })
}

// ErrForbidden is wrapped by every [ForbiddenError].
var ErrForbidden = errors.New("forbidden")

// A ForbiddenError says that a caller may not make a call.
type ForbiddenError struct {
	// Name is the caller, or empty.
	Name string `json:"name,omitempty"`
	// Call is the call.
	Call string `json:"call"`
	// Why says what it needs.
	Why string `json:"why"`
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s by %q: %v: %s", e.Call, e.Name, ErrForbidden, e.Why)
}

// Unwrap makes errors.Is(err, ErrForbidden) true.
func (e *ForbiddenError) Unwrap() error { return ErrForbidden }

// authorize admits a call if the caller's certificate has one of the call's
// roles. If it refuses a call for lack of a role, the Caller has only its Name.
func authorize(allowPlain bool) func(*http.Request, *wire.Info) (wire.Caller, error) {
	return func(r *http.Request, info *wire.Info) (wire.Caller, error) {
		id, verified := CallerOf(r)
		switch {
		case allowPlain && r.TLS == nil:
			return wire.Caller{SpeaksFor: func(string) error { return nil }}, nil
		case r.TLS == nil:
			return wire.Caller{}, &ForbiddenError{Call: info.Name, Why: "it requires TLS with a client certificate"}
		case !verified:
			return wire.Caller{}, &ForbiddenError{Call: info.Name, Why: "it requires a client certificate that the server verifies"}
		}
		var roles []Role // those that admit the caller
		for _, role := range id.Roles {
			if slices.Contains(info.Roles, string(role)) {
				roles = append(roles, role)
			}
		}
		if len(roles) == 0 {
			return wire.Caller{Name: id.Name}, &ForbiddenError{id.Name, info.Name, fmt.Sprintf(
				"a certificate with one of the organizational units %s is wanted", units(info.Roles))}
		}
		caller := wire.Caller{Name: id.Name, SpeaksFor: func(cellID string) error {
			switch {
			case id.Name == "": // it would mean all that is on no cell yet
				return &ForbiddenError{id.Name, info.Name, "a certificate whose common name is the cell's id is wanted"}
			case cellID != id.Name:
				return &ForbiddenError{id.Name, info.Name, fmt.Sprintf("only cell %q may say so", cellID)}
			}
			return nil
		}}
		if len(roles) == 1 && slices.Contains(ofDomains, roles[0]) {
			caller.Domains = func(domain string) error { return id.inDomain(roles[0], info, domain) }
		}
		if slices.Equal(roles, []Role{LockerRole}) {
			caller.Locks = func(name string) error { return id.locks(info, name) }
		}
		return caller, nil
	}
}

// ofDomains are the roles that hold for the domains of the certificate only.
var ofDomains = []Role{LogReaderRole, ExecRole}

// inDomain fails unless such a role holds for a domain, "" if nobody knows the
// domain.
func (id Identity) inDomain(own Role, info *wire.Info, domain string) error {
	others := slices.DeleteFunc(slices.Clone(info.Roles), func(role string) bool { return role == string(own) })
	switch {
	case domain == "":
		return &ForbiddenError{id.Name, info.Name, fmt.Sprintf(
			"the container has no domain, so a certificate with the organizational unit %s is wanted", units(others))}
	case !slices.Contains(id.Domains, domain):
		return &ForbiddenError{id.Name, info.Name, fmt.Sprintf(
			"the container is of the domain %q, and the role %s holds only for the domains of its certificate, %q: one with the organizational unit %s or %s is wanted",
			domain, own, id.Domains, domainPrefix+domain, units(others))}
	}
	return nil
}

// locks fails unless a locker may use the lock with that name; "" means all.
func (id Identity) locks(info *wire.Info, name string) error {
	switch {
	case slices.Contains(id.Locks, name):
		return nil
	case name == "":
		return &ForbiddenError{id.Name, info.Name, fmt.Sprintf("the role %s has to name one of the locks of its certificate, %q: all are for %s",
			LockerRole, id.Locks, rolePrefix+OperatorRole)}
	}
	return &ForbiddenError{id.Name, info.Name, fmt.Sprintf("the lock is %q, and the role %s uses only the locks of its certificate, %q: one with the organizational unit %s is wanted",
		name, LockerRole, id.Locks, lockPrefix+name)}
}

func units(roles []string) string {
	list := make([]string, len(roles))
	for i, role := range roles {
		list[i] = rolePrefix + role
	}
	return strings.Join(list, ", ")
}

// A service is what a client calls.
type service struct {
	name string
	// servers are the roles that may answer for it.
	servers []Role
	// several says that any of several processes answers, and may name another
	// one. Otherwise the server is the one whose name the client knows.
	several bool
}

var (
	bbsService = service{"BBS", []Role{BBSRole}, true}
	// A BBS without an auctioneer plans by itself; with one it hands plans on.
	auctioneerService = service{"auctioneer", []Role{AuctioneerRole, BBSRole}, true}
	cellService       = service{"cell", []Role{CellRole}, false}
)

// ErrImpostor is wrapped by every [ImpostorError].
var ErrImpostor = errors.New("it may not answer")

// An ImpostorError says that a server's certificate is valid, but does not
// allow it to answer for the service: a consumer that listens is not a cell.
// Nothing was sent to the server.
type ImpostorError struct {
	// Service is the service that was called: "BBS", "auctioneer" or "cell".
	Service string `json:"service"`
	// CellID is the cell that was called, or empty.
	CellID string `json:"cell_id,omitempty"`
	// Server is the identity of the server.
	Server Identity `json:"server"`
}

func (e *ImpostorError) Error() string {
	return fmt.Sprintf("the server has the certificate of %q with the roles %q, so %v for the %s",
		e.Server.Name, e.Server.Roles, ErrImpostor, strings.TrimSpace(e.Service+" "+e.CellID))
}

// Unwrap makes errors.Is(err, ErrImpostor) true.
func (e *ImpostorError) Unwrap() error { return ErrImpostor }

// admit fails with an *ImpostorError unless the server may answer for the
// service and, if that is a cell, is the cell with that id. server is from a
// verified certificate.
func (s service) admit(server Identity, cellID string) error {
	if s.several {
		cellID = ""
	}
	if (s.several || server.Name == cellID) &&
		slices.ContainsFunc(s.servers, func(role Role) bool { return slices.Contains(server.Roles, role) }) {
		return nil
	}
	return &ImpostorError{s.name, cellID, server}
}

// trusted returns c, which may be nil, for connections to this service only.
func (s service) trusted(c *tls.Config, cellID string) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c = c.Clone()
	before := c.VerifyConnection
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if before != nil {
			if err := before(state); err != nil {
				return err
			}
		}
		if err := s.admit(IdentityOf(state.PeerCertificates[0]), cellID); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		return nil
	}
	return c
}
