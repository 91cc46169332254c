package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// A Problem is the body of an answer that is an error (RFC 9457).
type Problem struct {
	// Type names the kind of error, such as "urn:diego:problem:not_found".
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is the text of the error.
	Detail    string `json:"detail,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	// Error holds what the error knows; its form depends on Type.
	Error json.RawMessage `json:"error,omitempty"`
}

// TypePrefix begins the type of every problem.
const TypePrefix = "urn:diego:problem:"

// A Kind is one kind of error that travels.
type Kind struct {
	// Name is its type without the prefix.
	Name string
	// Status is that of the answer; see StatusOf.
	Status int
	// StatusOf, unless nil, is the status for one error.
	StatusOf func(error) int
	Title    string
	// InPlace says that a list goes on after such an error.
	InPlace bool
	// Encode is what the error knows, and false if it is of another kind. It
	// looks into errors that wrap it; text is what it says itself.
	Encode func(error) (v any, text string, ok bool)
	// Decode makes the error again. The text of the whole error is put around
	// it where that says more.
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

// encode makes a problem of any error.
func (p *Problems) encode(err error) Problem {
	for i := range p.Kinds {
		k := &p.Kinds[i]
		v, _, ok := k.Encode(err)
		if !ok {
			continue
		}
		out := Problem{Type: TypePrefix + k.Name, Title: k.Title, Status: k.Status, Detail: strings.ToValidUTF8(err.Error(), "\uFFFD")}
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
	return Problem{
		Type: TypePrefix + "internal", Title: "something is broken", Status: http.StatusInternalServerError,
		Detail: strings.ToValidUTF8(err.Error(), "\uFFFD"),
	}
}

// Encode makes a problem of any error.
func (p *Problems) Encode(err error) Problem { return p.encode(err) }

// Decode makes the error of a problem again: what errors.Is and errors.As
// recognise on the one side they do on the other. A problem of no known kind is
// a *[RemoteError].
func (p *Problems) Decode(problem Problem) error { return p.decode(problem) }

func (p *Problems) decode(problem Problem) error {
	name := strings.TrimPrefix(problem.Type, TypePrefix)
	for i := range p.Kinds {
		if k := &p.Kinds[i]; k.Name == name {
			err, bad := k.Decode(problem.Error)
			if bad != nil {
				break // another version of us, or none
			}
			if err.Error() != problem.Detail && problem.Detail != "" {
				err = &worded{problem.Detail, err}
			}
			return err
		}
	}
	return &RemoteError{Problem: problem}
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

// A RemoteError is an error of the other side that is of no kind known here.
type RemoteError struct{ Problem Problem }

func (e *RemoteError) Error() string {
	text := fmt.Sprintf("the answer is %d: %s", e.Problem.Status, e.Problem.Title)
	if e.Problem.Detail != "" {
		text += ": " + e.Problem.Detail
	}
	if e.Problem.RequestID != "" {
		text += " (request " + e.Problem.RequestID + ")"
	}
	return text
}

// A TooLargeError says that something is longer than is accepted.
type TooLargeError struct {
	// What is too large, such as "request body".
	What string `json:"what"`
	// Limit is in bytes.
	Limit int64 `json:"limit"`
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.What, e.Limit)
}

// A TooManyError says that so many are open already that another one is
// refused. It may be asked for again later, or of another process.
type TooManyError struct {
	// What there are too many of, such as "subscriptions".
	What  string `json:"what"`
	Limit int    `json:"limit"`
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d %s are open in this process, which is its limit; try again later, or ask another process", e.Limit, e.What)
}

// A MethodError says that a path is asked with another method.
type MethodError struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Want   string `json:"want"`
}

func (e *MethodError) Error() string {
	return fmt.Sprintf("%s %s: want %s", e.Method, e.Path, e.Want)
}

// A PathError says that there is no such path.
type PathError struct {
	Path string `json:"path"`
}

func (e *PathError) Error() string {
	return fmt.Sprintf("%s: there is no such call; docs/api.md lists all", e.Path)
}

// OwnKinds are the errors of this package as kinds.
func OwnKinds() []Kind {
	return []Kind{
		Same(Kind{Name: "too_large", Status: http.StatusRequestEntityTooLarge, Title: "too large", Example: &TooLargeError{"request body", 4 << 20}},
			func() *TooLargeError { return new(TooLargeError) }),
		Same(Kind{Name: "too_many", Status: http.StatusServiceUnavailable, Title: "too many at a time", Example: &TooManyError{"subscriptions", 1000}},
			func() *TooManyError { return new(TooManyError) }),
		Same(Kind{Name: "method", Status: http.StatusMethodNotAllowed, Title: "another method is wanted", Example: &MethodError{"PUT", "/v1/bbs/desire", "POST"}},
			func() *MethodError { return new(MethodError) }),
		Same(Kind{Name: "no_such_call", Status: http.StatusNotFound, Title: "there is no such call", Example: &PathError{"/v2/bbs"}},
			func() *PathError { return new(PathError) }),
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
