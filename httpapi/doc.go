// Package httpapi carries the calls of a BBS, an auctioneer and a cell over
// HTTP.
//
//   - calls*.go are the tables of calls. Handlers, clients, roles and docs/api.md
//     follow from them.
//   - [NewHandler] serves them, and [RemoteBBS], [RemoteAuctioneer] and
//     [RemoteCell] make them. They do and answer what is called does in process.
//   - roles.go says who may call: the client's certificate has its roles.
//   - problems.go is the table of errors. errors.Is and errors.As see the same
//     through a client as in process.
//   - [Prometheus] keeps figures and serves them.
//
// internal/wire moves the bytes and knows nothing of what is called.
//
//go:generate go run ../internal/apidocs/generate .. ../docs/api.md
package httpapi
