// Package scripted is a backend in memory and in virtual time, for tests and
// simulations. It starts no process, opens no file and looks at no clock.
//
// What a process does is written in its arguments. Those of a process with the
// path [Path] are statements, carried out one after the other; at their end it
// exits with status 0:
//
//	print TEXT        write TEXT and a newline to stdout; $NAME is a variable
//	warn TEXT         the same to stderr
//	flood N           write N bytes to stdout
//	wait DURATION     do nothing for a time, such as 1.5s, or "forever"
//	exit N            end with a status
//	die N             end by a signal with that number
//	oom               be killed because the container's memory is used up
//	listen PORT       accept connections on a port of the container
//	serve PORT N      answer HTTP requests on a port with status N
//	close PORT        stop that
//	write FILE TEXT   make a file, relative to the working directory
//	remove FILE       remove it
//	need FILE         exit with status 1 unless the file is there
//	cat FILES         write the content of files to stdout
//	orphan            leave a child that never ends
//	ignore TERM       do nothing about TERM
//	on TERM           what follows is done at TERM, not now
//
// A process with another path runs for ever, which is what most do, unless
// Options.Programs says what it does. A name without a slash that it does not
// list, and everything below /no, is not there.
//
// Nothing happens by itself: [Backend.Step] carries out what is due and
// [Backend.Next] says when something will be.
//
// # Concurrent use
//
// The methods of [Backend] may be called concurrently; what its processes do
// then depends on the order of the calls. All other types are plain values: any
// number of goroutines may use one while none changes it.
package scripted
