package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/examples/allinone/sample"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// guide prints what to try next, once everything that is desired runs and all
// events about it, up to told, are printed. It reports whether it has printed.
// Before that it reads no records, because there may be thousands.
func (f *fleet) guide(ctx context.Context, out io.Writer, told storage.Cursor) bool {
	log, err := f.BBS.Log(ctx)
	if err != nil {
		return false
	}
	behind := told < log.Newest
	if behind && told > 0 {
		return false
	}
	desired := f.desired(ctx)
	if behind && desired > 0 {
		return false
	}
	records, err := f.running(ctx)
	if err != nil || len(records) < desired {
		return false
	}
	// The records may show events since that look at the log, which are not printed
	// yet.
	if log, err = f.BBS.Log(ctx); err != nil || told < log.Newest && desired > 0 {
		return false
	}
	var text bytes.Buffer
	writeGuide(&text, records, time.Since(f.began), f.data.In())
	_, _ = out.Write(text.Bytes()) // at once: other lines come before or after it
	return true
}

// running returns the instances that run, one for each index. It leaves out
// instances that ended with an earlier allinone, whose records still say RUNNING.
func (f *fleet) running(ctx context.Context) (records []lrp.ActualLRP, err error) {
	for r, err := range f.BBS.ResolvedLRPs(ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
		if err != nil {
			return nil, err
		}
		if f.has(r.InstanceGUID) {
			records = append(records, r)
		}
	}
	return records, nil
}

// desired returns how many instances are desired, or a number that cannot be
// reached if the list cannot be read.
func (f *fleet) desired(ctx context.Context) (n int) {
	for d, err := range f.BBS.Deployments(ctx, storage.DeploymentFilter{Bare: true}) {
		if err != nil {
			return math.MaxInt
		}
		n += d.Instances
	}
	return n
}

// has reports whether a cell has a container.
func (f *fleet) has(guid string) bool {
	return slices.ContainsFunc(f.cells, func(c *cell) bool {
		_, there := c.Manager.Get(guid)
		return there
	})
}

// writeGuide says what to try, with addresses and processes that are there.
func writeGuide(out io.Writer, records []lrp.ActualLRP, took time.Duration, data string) {
	var commands [][2]string // and what each does
	try := func(why, command string, args ...any) {
		commands = append(commands, [2]string{fmt.Sprintf(command, args...), why})
	}
	ctl := "go run ./examples/diegoctl"
	if data != fleetdir.Default() { // where diegoctl looks
		ctl += " --data " + shellWord(data)
	}
	if i := slices.IndexFunc(records, func(r lrp.ActualLRP) bool { return len(r.Ports) > 0 }); i >= 0 {
		try("ask "+name(records[i]), "curl %s", url(records[i]))
	}
	if r, pid := killable(records); pid != 0 {
		try("kill "+name(r)+": it is back at once", "kill -9 %d", pid)
	}
	if i := slices.IndexFunc(records, func(r lrp.ActualLRP) bool { return r.ProcessGUID == sample.ProcessGUID && r.Index == 2 }); i >= 0 {
		try("let "+name(records[i])+" fail; the fourth time it has to wait", "curl -X POST %s/exit/3", url(records[i]))
	}
	switch {
	case len(records) == 0:
		fmt.Fprintf(out, "\nNothing is desired yet. In another terminal:\n\n")
		try("have something run", "%s lrp create -f examples/specs/greeter.json", ctl)
	default:
		fmt.Fprintf(out, "\n%d running, %.1f s after the start. In another terminal:\n\n", len(records), took.Seconds())
		try("see what runs where", "%s instances", ctl)
		try("have more or fewer", "%s lrp scale %s 5", ctl, records[0].ProcessGUID)
		try("empty a cell", "%s drain %s", ctl, records[0].CellID)
	}
	width := 0
	for _, c := range commands {
		width = max(width, len(c[0]))
	}
	for _, c := range commands {
		fmt.Fprintf(out, "  %-*s  # %s\n", width, c[0], c[1])
	}
	fmt.Fprintf(out, "\nCtrl-C stops everything; the next start goes on with what is desired now.\n\n")
}

// shellWord is text as one word of a command line.
func shellWord(text string) string {
	if strings.ContainsAny(text, " \t'\"\\$&;()*?<>|`") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

func name(r lrp.ActualLRP) string { return r.ProcessGUID + "/" + strconv.Itoa(r.Index) }

func url(r lrp.ActualLRP) string {
	return "http://" + net.JoinHostPort(r.Address, strconv.Itoa(int(r.Ports[0].HostPort)))
}

// killable returns the second instance, or else the first, that has a process on
// this host, and that process.
func killable(records []lrp.ActualLRP) (lrp.ActualLRP, int) {
	for _, i := range []int{1, 0} {
		if i < len(records) {
			if pid := processOf(records[i].InstanceGUID); pid != 0 {
				return records[i], pid
			}
		}
	}
	return lrp.ActualLRP{}, 0
}

// processOf is the process of an instance as this host numbers it, in any
// namespace: it is known by its environment. It is 0 on systems
// without /proc.
func processOf(instanceGUID string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	first := 0
	for _, file := range files {
		environ, err := os.ReadFile(file) // of others it cannot be read
		if err != nil || !slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool {
			return string(v) == "INSTANCE_GUID="+instanceGUID
		}) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && (first == 0 || pid < first) {
			first = pid // what it has started comes later
		}
	}
	return first
}
