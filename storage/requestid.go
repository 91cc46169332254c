package storage

import "context"

type requestIDKey struct{}

// WithRequestID returns a context that marks a call so that it can be repeated
// if its answer is lost: calls of one method with one id are carried out once,
// while the store remembers the id: at least an hour. id has at most
// MaxIdentifierBytes bytes.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id that [WithRequestID] gave to the call, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

type callerKey struct{}

// WithCaller returns a context that says who makes a call. The history of a
// deployment, the events of sessions and the log of a cell show the name.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}

// Caller returns the name that [WithCaller] gave to the call, or "".
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}
