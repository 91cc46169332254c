package syslog

// AwaitEnd waits until s knows that its server has closed the connection.
func AwaitEnd(s *Sink) { <-s.gone }
