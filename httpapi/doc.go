// Package httpapi carries the calls of a BBS, an auctioneer and a cell over HTTP.
//
//   - calls*.go are the tables of calls. Handlers, clients, roles and docs/api.md
//     follow from them.
//   - [NewHandler] serves the calls. [RemoteBBS], [RemoteAuctioneer] and
//     [RemoteCell] make them; they do and return the same as the service does in
//     process.
//   - roles.go says who may call, by the roles in the client's certificate.
//   - problems.go is the table of errors. errors.Is and errors.As find the same
//     through a client as in process.
//   - [Prometheus] keeps metrics and serves them.
//
// internal/wire moves the bytes and knows nothing about the calls.
//
// # Concurrent use
//
// Handlers, [Prometheus], [RemoteBBS], [RemoteAuctioneer] and [RemoteCell] may
// be used by any number of goroutines. A handler calls what is in its options
// concurrently. All other types are plain values: any number of goroutines may
// use one while none changes it.
//
//go:generate go run ../internal/apidocs/generate .. ../docs/api.md
package httpapi
