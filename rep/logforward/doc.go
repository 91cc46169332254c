// Package logforward sends the output of containers to where logs are collected.
//
// A [Forwarder] takes every line of a cell's containers and hands it to a [Sink]
// for each destination, with labels that say whose output it is. Each destination
// has a buffer of its own, which drops the oldest lines when it is full, so no
// container waits for a destination, and no destination for another. Package
// syslog has a sink for RFC 5424; a sink of your own is a type with two methods.
//
// Delivery is neither exactly once nor guaranteed. A batch whose outcome is
// unknown is sent again. Lines in the buffer are lost if the process is killed.
//
// # Concurrent use
//
// The methods of [Forwarder] may be called concurrently. It calls each [Sink]
// from one goroutine at a time. All other types are plain values: any number of
// goroutines may use one while none changes it.
package logforward
