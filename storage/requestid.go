package storage

import "context"

type requestIDKey struct{}

// WithRequestID marks a call so that it can be repeated if its answer is lost:
// calls of one method with one id are carried out once.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the id that [WithRequestID] gave to a call, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

type callerKey struct{}

// WithCaller says who makes a call.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}

// Caller returns the name that [WithCaller] gave to the call, or "".
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}
