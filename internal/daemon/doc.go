// Package daemon is what the main functions under examples/ have in common and
// does not belong in a library: settings from a file and flags, logs,
// signals, certificates, an HTTP server's life, and the choice of a database
// and of a container backend.
//
// A daemon describes its settings as one struct ([Load]), and then opens its
// parts one after the other. Every error says what was wrong, with what, and
// what to do about it.
package daemon
