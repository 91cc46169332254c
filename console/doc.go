// Package console serves a page for browsers: the fleet as a picture, and what
// its operator may do.
//
//   - [New] puts the page and what it asks for beside the calls of httpapi. The
//     page makes those calls as they are, so the same roles decide.
//   - [Door] lets one browser in through a link, for a program that makes the
//     calls with a certificate of its own.
//   - assets are the pages; assets/vendor are libraries of others, which
//     scripts/console-vendor fetches as vendor.txt says.
//
// docs/console.md describes it for its users.
//
// # Concurrent use
//
// The handlers may be used by any number of goroutines.
package console
