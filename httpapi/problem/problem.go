// Package problem has the body of an error over HTTP, and the errors of HTTP
// itself: a wrong path or method, too many bytes, too many subscriptions, and an
// unknown error of the server. Package httpapi has the table of all errors that travel.
//
// # Concurrent use
//
// All types are plain values: any number of goroutines may use one while none
// changes it.
package problem

import (
	"encoding/json"
	"fmt"
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

// A RemoteError is an error of the other side whose kind is not known here.
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

// A TooManyError says that one more was refused because there are too many at a
// time. Ask again later, or ask another process.
type TooManyError struct {
	// What is limited, such as "subscriptions".
	What  string `json:"what"`
	Limit int    `json:"limit"`
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d %s at a time are the limit of this process; try again later, or ask another process", e.Limit, e.What)
}

// A MethodError says that a path was called with the wrong method.
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
