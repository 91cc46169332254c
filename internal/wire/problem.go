package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/diegosdk/diego/httpapi/problem"
)

// A Kind is one kind of error that travels over HTTP.
type Kind struct {
	// Name is the problem's type without the prefix.
	Name string
	// Status is the status of the answer; see StatusOf.
	Status int
	// StatusOf, unless nil, is the status for one error.
	StatusOf func(error) int
	Title    string
	// InPlace says that a list goes on after such an error.
	InPlace bool
	// Encode returns the content of the error, and false if it is of another kind.
	// It looks into errors that wrap it; text is the error's own text.
	Encode func(error) (v any, text string, ok bool)
	// Decode restores the error. The text of the whole error is put around it if
	// that says more.
	Decode func(json.RawMessage) (error, error)
	// Example is an error of this kind, for the documentation and the tests.
	Example error
}

// Typed is a kind for errors of type E, which travel in the form W.
func Typed[E error, W any](k Kind, to func(E) W, from func(W) (E, error)) Kind {
	k.Encode = func(err error) (any, string, bool) {
		var e E
		if !errors.As(err, &e) {
			return nil, "", false
		}
		return to(e), e.Error(), true
	}
	k.Decode = func(data json.RawMessage) (error, error) {
		var w W
		if err := json.Unmarshal(data, &w); err != nil {
			return nil, err
		}
		return from(w)
	}
	return k
}

// Plain is a kind for an error that is one value.
func Plain(k Kind, sentinel error) Kind {
	k.Encode = func(err error) (any, string, bool) {
		return nil, sentinel.Error(), errors.Is(err, sentinel)
	}
	k.Decode = func(json.RawMessage) (error, error) { return sentinel, nil }
	k.Example = sentinel
	return k
}

// Problems are the kinds of errors of an API. The first kind that fits counts.
type Problems struct {
	Kinds []Kind
	// Elsewhere reports whether an error says that the call was not carried out
	// and another process may do it: the one at address, if that is known.
	Elsewhere func(error) (address string, ok bool)
}

// Encode makes a problem of any error.
func (p *Problems) Encode(err error) problem.Problem {
	for i := range p.Kinds {
		k := &p.Kinds[i]
		v, _, ok := k.Encode(err)
		if !ok {
			continue
		}
		out := problem.Problem{Type: problem.TypePrefix + k.Name, Title: k.Title, Status: k.Status, Detail: strings.ToValidUTF8(err.Error(), "\uFFFD")}
		if k.StatusOf != nil {
			out.Status = k.StatusOf(err)
		}
		if v != nil {
			// A form that cannot be written is left out: the kind and the text
			// arrive.
			out.Error, _ = json.Marshal(v)
		}
		return out
	}
	return problem.Problem{
		Type: problem.TypePrefix + "internal", Title: "something is broken", Status: http.StatusInternalServerError,
		Detail: strings.ToValidUTF8(err.Error(), "\uFFFD"),
	}
}

// Decode restores the error of a problem: errors.Is and errors.As find the same
// on both sides. A problem of unknown kind is a *[problem.RemoteError].
func (p *Problems) Decode(from problem.Problem) error {
	name := strings.TrimPrefix(from.Type, problem.TypePrefix)
	for i := range p.Kinds {
		if k := &p.Kinds[i]; k.Name == name {
			err, bad := k.Decode(from.Error)
			if bad != nil {
				break // another version of us, or none
			}
			if err.Error() != from.Detail && from.Detail != "" {
				err = &worded{from.Detail, err}
			}
			return err
		}
	}
	return &problem.RemoteError{Problem: from}
}

// inPlace reports whether a list goes on after err.
func (p *Problems) inPlace(err error) bool {
	for i := range p.Kinds {
		if _, _, ok := p.Kinds[i].Encode(err); ok {
			return p.Kinds[i].InPlace
		}
	}
	return false
}

// A worded error says more than what it wraps.
type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }

// Unwrap makes errors.Is and errors.As work with what was wrapped.
func (e *worded) Unwrap() error { return e.err }

// RequestBody is what is too large, in a [problem.TooLargeError], if a server has not
// carried out a call because its arguments are longer than MaxBodyBytes.
const RequestBody = "request body"

// OwnKinds are the errors of this package as kinds.
func OwnKinds() []Kind {
	return []Kind{
		Same(Kind{Name: "too_large", Status: http.StatusRequestEntityTooLarge, Title: "too large", Example: &problem.TooLargeError{What: RequestBody, Limit: 4 << 20}},
			func() *problem.TooLargeError { return new(problem.TooLargeError) }),
		Same(Kind{Name: "too_many", Status: http.StatusServiceUnavailable, Title: "too many at a time", Example: &problem.TooManyError{What: "subscriptions", Limit: 1000}},
			func() *problem.TooManyError { return new(problem.TooManyError) }),
		Same(Kind{Name: "method", Status: http.StatusMethodNotAllowed, Title: "another method is wanted", Example: &problem.MethodError{Method: "PUT", Path: "/v1/bbs/desire", Want: "POST"}},
			func() *problem.MethodError { return new(problem.MethodError) }),
		Same(Kind{Name: "no_such_call", Status: http.StatusNotFound, Title: "there is no such call", Example: &problem.PathError{Path: "/v2/bbs"}},
			func() *problem.PathError { return new(problem.PathError) }),
	}
}

// Same is a kind for errors of type E that travel as they are. empty makes one
// to decode into.
func Same[E error](k Kind, empty func() E) Kind {
	k = Typed(k, func(e E) E { return e }, func(e E) (E, error) { return e, nil })
	k.Decode = func(data json.RawMessage) (error, error) {
		e := empty()
		if len(data) == 0 {
			return nil, ErrGarbled
		}
		return e, json.Unmarshal(data, e)
	}
	return k
}
