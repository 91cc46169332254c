// Package backendtest is the suite that every [executor.ContainerBackend]
// passes. A backend's own test is
//
//	func TestMain(m *testing.M) { backendtest.Main(m) }
//
//	func TestBackend(t *testing.T) {
//		backendtest.Run(t, backendtest.Subject{New: newBackend, RootFS: "host:", User: "nobody"})
//	}
//
// Each case is named after the sentence of the interface that it checks.
//
// # Concurrent use
//
// The suite may call Subject.Command and the backend concurrently, and calls the
// other functions of a [Subject] from the goroutine of the test. All types are
// plain values: any number of goroutines may use one while none changes it.
package backendtest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// A Subject is a backend to be tested.
type Subject struct {
	// New returns a fresh backend without containers. What it needs is cleaned
	// up with t.Cleanup.
	New func(t *testing.T) executor.ContainerBackend
	// Restart returns a backend over the same state as old, as after a crash
	// of the daemon: old is not told and not used any more. Nil means that the
	// backend's containers do not outlive it.
	Restart func(t *testing.T, old executor.ContainerBackend) executor.ContainerBackend
	// RootFS and User are used for all containers and processes. The root file
	// system has /bin/sh and the usual tools, unless Command is set.
	RootFS, User string
	// Command is how this backend runs a program; nil means with /bin/sh.
	Command func(Program) (path string, args []string)
}

// A Program is something that the suite wants to run in a container.
type Program string

// The programs.
const (
	// Exit0 and Exit3 end at once with that status.
	Exit0 Program = "exit 0"
	Exit3 Program = "exit 3"
	// Print writes "out" to stdout, "err" to stderr, each with a newline.
	Print Program = "print"
	// PrintEnv writes the values of A and B with a colon between them.
	PrintEnv Program = "print A and B"
	// Flood writes FloodBytes bytes to stdout.
	Flood Program = "flood"
	// Sleep runs until a signal ends it.
	Sleep Program = "sleep"
	// Stubborn writes "ready", ignores TERM, and runs until it is killed.
	Stubborn Program = "ignore TERM"
	// Polite writes "ready" and runs until TERM, then writes "bye" and ends
	// with status 7.
	Polite Program = "end on TERM"
	// Orphan leaves a child that holds stdout and never ends, writes "gone"
	// and ends with status 0.
	Orphan Program = "leave an orphan"
	// Family has a child in its process group, writes "ready", and waits for it.
	Family Program = "run beside a child"
	// WriteFile puts "result" into the file "result" of the directory in which
	// it runs.
	WriteFile Program = "write a file"
	// ReadFiles writes the content of the files given/mounted and given/file,
	// below the directory in which it runs.
	ReadFiles Program = "read files"
	// Serve answers HTTP requests on the port in PORT with status 200.
	Serve Program = "serve"
	// Missing is not there.
	Missing Program = "no such program"
)

// FloodBytes is the output of Flood.
const FloodBytes = 100 << 20

var shell = map[Program]string{
	Exit0:     "exit 0",
	Exit3:     "exit 3",
	Print:     "echo out; echo err >&2",
	PrintEnv:  `echo "$A:$B"`,
	Flood:     fmt.Sprintf("head -c %d /dev/zero", FloodBytes),
	Sleep:     "exec sleep 100000",
	Stubborn:  "trap '' TERM; echo ready; while :; do sleep 1; done",
	Polite:    "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done",
	Orphan:    "sleep 100000 & echo gone",
	Family:    "sleep 100000 & echo ready; wait",
	WriteFile: "printf result > result",
	ReadFiles: "cat given/mounted given/file",
}

// serveVar makes the test's own binary, which is mounted into a container, a
// web server.
const serveVar = "BACKENDTEST_SERVE"

// helperDir is where the test's own binary is in every container.
const helperDir = "/backendtest"

// Main runs the tests of a package, or the suite's own helper when it was
// started in a container.
func Main(m *testing.M) {
	if os.Getenv(serveVar) != "" {
		l, err := net.Listen("tcp", ":"+os.Getenv("PORT"))
		if err == nil {
			err = http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run() // package testing exits with its result
}

func (s Subject) command(p Program) (path string, args []string) {
	switch {
	case s.Command != nil:
		return s.Command(p)
	case p == Serve:
		return helperDir + "/serve", nil
	case p == Missing:
		return "/no/such/program", nil
	}
	return "/bin/sh", []string{"-c", shell[p]}
}
