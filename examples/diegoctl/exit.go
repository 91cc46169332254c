package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/internal/spelling"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// The exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitNotFound
	exitRefused
	exitUnreachable
	exitInvalid
	exitForbidden
	exitInterrupted = 130
)

// exitCodes are what the codes mean, for help.
var exitCodes = []struct {
	code int
	help string
}{
	{exitOK, "done; also a watch or a follow that was interrupted"},
	{exitFailed, "failed in any other way; a task that was waited for failed; a plan in which something goes nowhere; a host that cannot run real containers"},
	{exitUsage, "the command line is wrong"},
	{exitNotFound, "there is no such process, instance, task, cell or container"},
	{exitRefused, "refused as things are: it exists already, has changed, or is in another state"},
	{exitUnreachable, "no server could be reached or trusted, none leads, or no answer came: what was asked may have been done"},
	{exitInvalid, "what was asked for is outside its limits; for a spec file, with line and field"},
	{exitForbidden, "the certificate does not permit this"},
	{exitInterrupted, "interrupted"},
}

// A failedError ends a command whose answer has already said what failed.
type failedError struct{}

func (e *failedError) Error() string { return "failed" }

// A commandError says that a command which diegoctl has run, here or in a
// container, has failed. That command has said why.
type commandError struct{ code int }

func (e *commandError) Error() string { return fmt.Sprintf("the command has exited with %d", e.code) }

// A kindOfError is what an error means to the user.
type kindOfError struct {
	is   func(error) bool
	code int
	// advice is what to do about it; it may be nil.
	advice func(c *call, err error) string
}

func wraps(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

func holds[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func says(text string) func(*call, error) string {
	return func(*call, error) string { return text }
}

// kinds are looked through in order.
var kinds = []kindOfError{
	{is: holds[*cli.UsageError], code: exitUsage, advice: func(c *call, _ error) string {
		if c.cmd.HasSubCommands() {
			return c.cmd.CommandPath() + " --help lists its commands"
		}
		return "usage: " + c.cmd.UseLine() + "\n" + c.cmd.CommandPath() + " --help says more"
	}},
	{is: holds[*failedError], code: exitFailed},
	{is: holds[*patienceError], code: exitFailed, advice: says("it goes on all the same; --for waits longer")},
	{is: wraps(bbs.ErrLockLost), code: exitRefused, advice: says("the command was ended with it; run it again to wait for the lock")},
	{is: wraps(context.Canceled), code: exitInterrupted},
	{is: holds[*httpapi.ForbiddenError], code: exitForbidden, advice: says("another certificate is needed: --cert and --key (DIEGO_CERT, DIEGO_KEY)")},
	{is: wraps(executor.ErrInvalid), code: exitInvalid},
	{is: holds[*missingError], code: exitNotFound},
	{is: wraps(executor.ErrNoSession), code: exitRefused},
	{is: wraps(executor.ErrNoFile), code: exitNotFound},
	{is: wraps(executor.ErrUnsafeArchive), code: exitRefused, advice: func(c *call, _ error) string {
		if _, _, in := place(c.arg(1)); in {
			return "what came before it may have been copied"
		}
		return "nothing was kept of it"
	}},
	{is: wraps(lrp.ErrNotFound), code: exitNotFound, advice: says("nothing is recorded there; diegoctl instances shows what is")},
	{is: wraps(storage.ErrNotFound), code: exitNotFound, advice: func(c *call, _ error) string { return c.similar() }},
	{is: wraps(task.ErrExists), code: exitRefused, advice: says("give the task another task_guid, or remove the old one with diegoctl task delete")},
	{is: wraps(storage.ErrExists), code: exitRefused, advice: says("diegoctl deployment update changes what is there, diegoctl lrp delete removes it")},
	{is: wraps(bbs.ErrNotLeader), code: exitUnreachable, advice: says("name all addresses with --bbs, with commas between them; one of them leads, or will in some seconds")},
	{is: wraps(storage.ErrConflict), code: exitRefused, advice: says("somebody else was faster; look at it again and repeat the command")},
	{is: wraps(lrp.ErrRefused, lrp.ErrCannotBeRetired, lrp.ErrCannotBeRemoved, storage.ErrHeld), code: exitRefused},
	{is: wraps(task.ErrInvalidTransition, task.ErrRunningElsewhere), code: exitRefused, advice: says("diegoctl task get shows the task's state")},
	{is: wraps(storage.ErrGone), code: exitRefused, advice: says("leave --after out to begin with the oldest event there is")},
	{is: holds[*absentError], code: exitUnreachable, advice: says("start one with go run ./examples/allinone, or name a BBS with --bbs (DIEGO_BBS)\nan allinone of another user, such as root, answers that user only; one with --data is found with the same --data (DIEGO_DATA)")},
	{is: wraps(fs.ErrNotExist, fs.ErrPermission), code: exitFailed},
	{is: holds[*problem.PathError], code: exitFailed, advice: adviceOnServices},
	{is: unreachable, code: exitUnreachable, advice: adviceOnConnections},
	{is: func(err error) bool { return strings.Contains(err.Error(), "HTTP request to an HTTPS server") }, code: exitFailed,
		advice: says("the server speaks TLS; begin the address with https://")},
}

// codeTable is the exit codes, for help.
func codeTable() string {
	var b strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %-4d %s\n", e.code, e.help)
	}
	return b.String()
}

// exit reports the error that cmd ended with and returns the exit code.
func (p *process) exit(cmd *cobra.Command, err error) int {
	switch {
	case err == nil:
		return exitOK
	case holds[*failedError](err):
		return exitFailed
	}
	var command *commandError
	if errors.As(err, &command) && !errors.Is(err, bbs.ErrLockLost) {
		return command.code
	}
	var failed *actionError
	if errors.As(err, &failed) {
		err = failed.error
	} else if !holds[*cli.UsageError](err) {
		err = &cli.UsageError{Text: err.Error()} // of cobra
	}
	c := p.call(cmd, cmd.Flags().Args())
	code, advice := exitFailed, ""
	for _, k := range kinds {
		if k.is(err) {
			code = k.code
			if k.advice != nil {
				advice = k.advice(c, err)
			}
			break
		}
	}
	if code == exitInterrupted {
		return code
	}
	// A spec file's errors are lines that an editor understands; nothing
	// stands before them.
	message := err.Error()
	if !holds[*specfile.Error](err) {
		message = cmd.CommandPath() + ": " + message
	}
	lines := strings.Split(message, "\n")
	for i := range lines {
		lines[i] = show.Red.Of(show.Printable(lines[i])).Show(c.stderrTerminal && c.Colour)
	}
	fmt.Fprintln(c.stderr, strings.Join(lines, "\n"))
	if advice != "" {
		for line := range strings.SplitSeq(advice, "\n") {
			c.note("  %s", line)
		}
	}
	return code
}

// similar suggests an argument that exists, in place of one that does not.
func (c *call) similar() string {
	if c.cmd.ValidArgsFunction == nil {
		return ""
	}
	for i, arg := range c.args {
		known, _ := c.cmd.ValidArgsFunction(c.cmd, c.args[:i], "")
		if guess := spelling.Nearest(arg, known); guess != "" && guess != arg {
			return fmt.Sprintf("did you mean %s?", guess)
		}
	}
	if c.cmd.Parent().Name() == "task" {
		return "diegoctl task list shows what there is"
	}
	return "diegoctl lrp list shows what there is"
}

// unreachable reports whether an error is about the way to a server.
func unreachable(err error) bool {
	return errors.Is(err, httpapi.ErrUnreachable) || errors.Is(err, httpapi.ErrNoAnswer) || errors.Is(err, httpapi.ErrGarbled) ||
		errors.Is(err, context.DeadlineExceeded) || isTLS(err)
}

func isTLS(err error) bool {
	return holds[*tls.CertificateVerificationError](err) || holds[x509.UnknownAuthorityError](err) ||
		holds[x509.HostnameError](err) || holds[x509.CertificateInvalidError](err) || holds[tls.AlertError](err)
}

func adviceOnServices(c *call, _ error) string {
	if c.cmd.Name() == "plan" || c.on("dry-run") {
		return "that server does not offer it; if the auctioneer is another than the BBS, a plan needs --auctioneer (DIEGO_AUCTIONEER)"
	}
	return "that server does not offer it; --bbs (DIEGO_BBS) has to be the address of a BBS, and is " + c.asked()
}

func adviceOnImpostors(c *call, err error) string {
	var impostor *httpapi.ImpostorError
	_ = errors.As(err, &impostor)
	switch {
	case impostor == nil || impostor.Service == "BBS":
		return "--bbs (DIEGO_BBS) has to be the address of a BBS, whose certificate has the unit diego-bbs; it is " + c.asked()
	case impostor.Service == "auctioneer":
		return "--auctioneer (DIEGO_AUCTIONEER) has to be the address of an auctioneer, whose certificate has the unit diego-auctioneer, or of a BBS"
	}
	return "somebody else listens at the cell's address: a cell's certificate has the unit diego-cell and the cell's id as its common name"
}

func adviceOnConnections(c *call, err error) string {
	switch {
	case errors.Is(err, httpapi.ErrNoAnswer) && (c.cmd.Name() == "exec" || c.cmd.Name() == "cp"):
		return "what ran in the container has ended with the session; diegoctl timeline shows what became of the instance"
	case errors.Is(err, httpapi.ErrImpostor):
		return adviceOnImpostors(c, err)
	case holds[x509.UnknownAuthorityError](err), holds[*tls.CertificateVerificationError](err) && !holds[x509.HostnameError](err):
		return "the server's certificate is not signed by what --ca (DIEGO_CA) holds"
	case holds[x509.HostnameError](err):
		return "the server's certificate is for another name than the one in --bbs (DIEGO_BBS)"
	case isTLS(err), strings.Contains(err.Error(), "remote error: tls"):
		return "the server refuses the certificate of --cert (DIEGO_CERT), or there is none"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server speaks no TLS; begin the address with http://"
	case holds[*cellError](err):
		return "does the daemon of the cell run? diegoctl cells shows which are present"
	}
	if strings.Contains(c.text("bbs"), ",") {
		return "are the addresses right? --bbs (DIEGO_BBS) is " + c.text("bbs") + "\nif one of them led and was lost, another leads after a lease, 15s unless set otherwise; repeat the command then"
	}
	if c.text("bbs") == "" {
		return "does allinone still run? this is the address of " + c.asked() + "; --bbs (DIEGO_BBS) names another BBS"
	}
	return "is the address right? --bbs (DIEGO_BBS) is " + c.asked()
}

// asked is the BBS that the flags lead to.
func (c *call) asked() string {
	return cmp.Or(c.text("bbs"), "the allinone in "+cmp.Or(c.text("data"), fleetdir.Default()))
}
