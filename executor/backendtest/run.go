package backendtest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// Run tests a backend.
func Run(t *testing.T, s Subject) {
	for _, c := range []struct {
		name string
		test func(*fixture)
	}{
		{"Probe says who the backend is and why each missing feature is missing", probe},
		{"a container is listed from Create to Delete", lifecycle},
		{"a guid is used once", guidTwice},
		{"a container that is not there is ErrNoContainer, but to delete it is no error", unknownContainer},
		{"Create with an ended context leaves nothing", createCancelled},
		{"a process ends with its status", exitStatus},
		{"a signal ends a process and is reported", killed},
		{"what a process wrote is there when its end is reported", outputBeforeExit},
		{"no output is lost, however much", flood},
		{"output may be discarded", discard},
		{"a process has its arguments and environment, the later of two variables", environment},
		{"ten thousand variables are passed on", manyVariables},
		{"a program that is not there is an error of Start", missingCommand},
		{"a directory that is not there is an error of Start", missingDirectory},
		{"TERM lets a process end in its own way", terminate},
		{"KILL ends a process that ignores TERM", stubborn},
		{"KILL reaches the children in the group of a process", family},
		{"to signal a process that has ended is not an error", signalEnded},
		{"children that hold the output do not delay the end", orphan},
		{"Signal reaches everything in a container, and after KILL nothing is left", signalAll},
		{"Delete ends what runs in the container and nowhere else, and then no writer is used", deleteRunning},
		{"Delete may come twice and at any time", deleteStorm},
		{"files and mounts are there before anything runs", filesAndMounts},
		{"a mounted directory shows what changes in it, a link that is renamed over another too", mountedChanges},
		{"what is streamed in comes out again", streams},
		{"a file that is not there is ErrNoFile", missingFile},
		{"an archive that leads out of its directory is ErrUnsafeArchive", unsafeArchives},
		{"Dial reaches a process that listens, and nobody else", dial},
		{"usage is figures or Unknown", usage},
		{"containers of an earlier daemon are listed, and Delete ends what runs in them", restart},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(newFixture(t, s)) })
	}
}

func probe(f *fixture) {
	h, err := f.backend.Probe(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	if h.Backend == "" {
		f.Error("the backend has no name")
	}
	seen := map[executor.FeatureName]bool{}
	for _, feature := range h.Features {
		if feature.Name == "" || seen[feature.Name] {
			f.Errorf("feature %q has no name or is listed twice", feature.Name)
		}
		seen[feature.Name] = true
		if h.Has(feature.Name) != (feature.Missing == "") {
			f.Errorf("Has(%q) = %v", feature.Name, h.Has(feature.Name))
		}
	}
}

func lifecycle(f *fixture) {
	if got := f.list(); len(got) != 0 {
		f.Fatalf("a fresh backend lists %q", got)
	}
	a, _ := f.container()
	b, _ := f.container()
	if got := f.list(); !slices.Equal(got, []string{a, b}) {
		f.Errorf("the list is %q, want %q and %q", got, a, b)
	}
	f.delete(a)
	if got := f.list(); !slices.Equal(got, []string{b}) {
		f.Errorf("after Delete the list is %q, want only %q", got, b)
	}
}

func guidTwice(f *fixture) {
	guid, _ := f.container()
	spec := f.spec()
	spec.GUID = guid
	_, err := f.backend.Create(f.ctx, spec)
	f.mustBe(err, executor.ErrContainerExists)
	f.start(guid, Exit0).mustExit(executor.Exit{})
	f.delete(guid)
	if _, err := f.backend.Create(f.ctx, spec); err != nil {
		f.Errorf("the guid cannot be used again after Delete: %v", err)
	}
}

func unknownContainer(f *fixture) {
	_, err := f.tryStart("nobody", Exit0)
	f.mustBe(err, executor.ErrNoContainer)
	f.mustBe(f.backend.Signal(f.ctx, "nobody", executor.Kill), executor.ErrNoContainer)
	_, err = f.backend.Usage(f.ctx, "nobody")
	f.mustBe(err, executor.ErrNoContainer)
	f.mustBe(f.backend.StreamIn(f.ctx, "nobody", "/", f.User, bytes.NewReader(nil)), executor.ErrNoContainer)
	_, err = f.backend.StreamOut(f.ctx, "nobody", "/", f.User)
	f.mustBe(err, executor.ErrNoContainer)
	_, err = f.backend.Dial(f.ctx, "nobody", 1)
	f.mustBe(err, executor.ErrNoContainer)
	f.delete("nobody")
}

func createCancelled(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := f.backend.Create(ctx, f.spec()); err == nil {
		f.Error("Create succeeded")
	}
	if got := f.list(); len(got) != 0 {
		f.Errorf("left behind: %q", got)
	}
}

func exitStatus(f *fixture) {
	guid, _ := f.container()
	f.start(guid, Exit0).mustExit(executor.Exit{})
	f.start(guid, Exit3).mustExit(executor.Exit{Status: 3})
}

func killed(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Sleep)
	if _, ended := p.ended(); ended {
		f.Error("it ended by itself")
	}
	p.signal(executor.Kill)
	p.mustExit(executor.Exit{Signal: 9})
}

func outputBeforeExit(f *fixture) {
	guid, _ := f.container()
	for range 20 {
		p := f.start(guid, Print)
		p.mustExit(executor.Exit{})
		if out, err := p.stdout.String(), p.stderr.String(); out != "out\n" || err != "err\n" {
			f.Fatalf("stdout %q, stderr %q", out, err)
		}
	}
}

func flood(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Flood)
	p.mustExit(executor.Exit{})
	if got := p.stdout.bytes(); got != FloodBytes {
		f.Errorf("%d bytes arrived, want %d", got, FloodBytes)
	}
}

func discard(f *fixture) {
	guid, _ := f.container()
	f.start(guid, Flood, func(s *executor.ProcessSpec) { s.Stdout, s.Stderr = nil, nil }).mustExit(executor.Exit{})
}

func environment(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, PrintEnv, func(s *executor.ProcessSpec) {
		s.Env = append(s.Env, executor.EnvVar{Name: "A", Value: "1"}, executor.EnvVar{Name: "B", Value: "two words"}, executor.EnvVar{Name: "A", Value: "3"})
	})
	p.mustExit(executor.Exit{})
	if got := p.stdout.String(); got != "3:two words\n" {
		f.Errorf("it printed %q", got)
	}
}

func manyVariables(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, PrintEnv, func(s *executor.ProcessSpec) {
		for i := range executor.MaxListLength - 2 {
			s.Env = append(s.Env, executor.EnvVar{Name: fmt.Sprintf("V%d", i), Value: "x"})
		}
		s.Env = append(s.Env, executor.EnvVar{Name: "A", Value: "1"}, executor.EnvVar{Name: "B", Value: "2"})
	})
	p.mustExit(executor.Exit{})
	if got := p.stdout.String(); got != "1:2\n" {
		f.Errorf("it printed %q", got)
	}
}

func missingCommand(f *fixture) {
	guid, _ := f.container()
	_, err := f.tryStart(guid, Missing)
	f.mustBe(err, executor.ErrNoCommand)
	_, err = f.tryStart(guid, Missing, func(s *executor.ProcessSpec) { s.Path = "no-such-program-in-path" })
	f.mustBe(err, executor.ErrNoCommand)
}

func missingDirectory(f *fixture) {
	guid, _ := f.container()
	if _, err := f.tryStart(guid, Exit0, func(s *executor.ProcessSpec) { s.Dir = "/no/such/directory" }); err == nil {
		f.Error("it started")
	}
}

func terminate(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Polite)
	p.mustSay("ready")
	p.signal(executor.Terminate)
	p.mustExit(executor.Exit{Status: 7})
	if got := p.stdout.String(); got != "ready\nbye\n" {
		f.Errorf("it printed %q", got)
	}
}

func stubborn(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Stubborn)
	p.mustSay("ready")
	p.signal(executor.Terminate)
	f.start(guid, Print).mustExit(executor.Exit{}) // time for the signal to arrive
	if e, ended := p.ended(); ended {
		f.Fatalf("it ended with %v", e)
	}
	p.signal(executor.Kill)
	p.mustExit(executor.Exit{Signal: 9})
}

func family(f *fixture) {
	guid, _ := f.container()
	p, mustBeGone := f.hold(guid, Family, "ready")
	p.signal(executor.Kill)
	p.mustExit(executor.Exit{Signal: 9})
	mustBeGone()
	f.mustCount(guid, func(n int64) bool { return n == 0 })
}

func signalEnded(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Exit0)
	p.mustExit(executor.Exit{})
	p.signal(executor.Terminate)
	p.signal(executor.Kill)
	if err := f.backend.Signal(f.ctx, guid, executor.Kill); err != nil {
		f.Errorf("Signal to a container without processes: %v", err)
	}
}

func orphan(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Orphan)
	p.mustExit(executor.Exit{})
	if got := p.stdout.String(); got != "gone\n" {
		f.Errorf("it printed %q", got)
	}
	f.mustCount(guid, func(n int64) bool { return n > 0 })
	f.delete(guid)
}

func signalAll(f *fixture) {
	guid, _ := f.container()
	_, mustBeGone := f.hold(guid, Orphan, "gone")
	polite := f.start(guid, Polite)
	polite.mustSay("ready")
	if err := f.backend.Signal(f.ctx, guid, executor.Terminate); err != nil {
		f.Errorf("Signal TERM: %v", err)
	}
	polite.mustExit(executor.Exit{Status: 7})
	stubborn := f.start(guid, Stubborn)
	stubborn.mustSay("ready")
	if err := f.backend.Signal(f.ctx, guid, executor.Kill); err != nil {
		f.Errorf("Signal KILL: %v", err)
	}
	if n := f.pids(guid); n > 0 {
		f.Errorf("%d processes are left", n)
	}
	stubborn.mustExit(executor.Exit{Signal: 9})
	mustBeGone()
	f.start(guid, Exit0).mustExit(executor.Exit{}) // the container itself lives
}

func deleteRunning(f *fixture) {
	guid, _ := f.container()
	neighbour, _ := f.container()
	other := f.start(neighbour, Stubborn)
	other.mustSay("ready")
	sleep, stubborn := f.start(guid, Sleep), f.start(guid, Stubborn)
	_, mustBeGone := f.hold(guid, Orphan, "gone")
	stubborn.mustSay("ready")
	f.delete(guid)
	mustBeGone()
	for _, p := range []*process{sleep, stubborn} {
		for _, o := range []*output{p.stdout, p.stderr} {
			o.mu.Lock()
			o.closed = true
			o.mu.Unlock()
		}
	}
	sleep.mustExit(executor.Exit{Signal: 9})
	stubborn.mustExit(executor.Exit{Signal: 9})
	_, err := f.tryStart(guid, Exit0)
	f.mustBe(err, executor.ErrNoContainer)
	if sleep.stdout.late || stubborn.stdout.late {
		f.Error("a writer was used after Delete had returned")
	}
	f.start(neighbour, Print).mustExit(executor.Exit{})
	if e, ended := other.ended(); ended {
		f.Errorf("Delete has ended a process of another container with %v", e)
	}
}

func deleteStorm(f *fixture) {
	const rounds, parallel = 8, 4
	for range rounds {
		spec := f.spec()
		var wait sync.WaitGroup
		wait.Go(func() {
			_, err := f.backend.Create(f.ctx, spec)
			if err != nil && !errors.Is(err, executor.ErrNoContainer) {
				f.Errorf("Create while Delete is called: %v", err)
			}
		})
		for range parallel {
			wait.Go(func() {
				p, err := f.tryStart(spec.GUID, Sleep)
				if err != nil && !errors.Is(err, executor.ErrNoContainer) {
					f.Errorf("Start while Delete is called: %v", err)
				}
				if err == nil {
					p.signal(executor.Terminate)
				}
			})
			wait.Go(func() {
				if err := f.backend.Delete(f.ctx, spec.GUID); err != nil {
					f.Errorf("Delete while others work: %v", err)
				}
			})
		}
		wait.Wait()
		f.delete(spec.GUID)
		if got := f.list(); len(got) != 0 {
			f.Fatalf("left behind: %q", got)
		}
	}
}

func filesAndMounts(f *fixture) {
	source := f.hostFile("mounted", "mounted")
	guid, _ := f.container(func(c *executor.ContainerSpec) {
		c.Files = []executor.File{{Path: "/job/given/file", Content: "file"}}
		c.Mounts = append(c.Mounts, executor.Mount{Source: source, Target: "/job/given/mounted"})
	})
	p := f.start(guid, ReadFiles, func(s *executor.ProcessSpec) { s.Dir = "/job" })
	p.mustExit(executor.Exit{})
	if got := p.stdout.String(); got != "mountedfile" {
		f.Errorf("the process read %q", got)
	}
}

// A certificate that is renewed reaches a running container in this way.
func mountedChanges(f *fixture) {
	source := f.TempDir()
	pair := func(dir, mounted, file string) {
		f.Helper()
		if err := os.Mkdir(filepath.Join(source, dir), 0o755); err != nil {
			f.Fatal(err)
		}
		for name, content := range map[string]string{"mounted": mounted, "file": file} {
			if err := os.WriteFile(filepath.Join(source, dir, name), []byte(content), 0o644); err != nil {
				f.Fatal(err)
			}
		}
	}
	link := func(name, to string) {
		f.Helper()
		if err := os.Symlink(to, filepath.Join(source, name)); err != nil {
			f.Fatal(err)
		}
	}
	pair("1", "old", "pair")
	link("current", "1")
	link("mounted", "current/mounted")
	link("file", "current/file")
	guid, _ := f.container(func(c *executor.ContainerSpec) {
		c.Mounts = append(c.Mounts, executor.Mount{Source: source, Target: "/job/given"})
	})
	reads := func(want string) {
		f.Helper()
		p := f.start(guid, ReadFiles, func(s *executor.ProcessSpec) { s.Dir = "/job" })
		p.mustExit(executor.Exit{})
		if got := p.stdout.String(); got != want {
			f.Errorf("the process read %q, want %q", got, want)
		}
	}
	reads("oldpair")
	pair("2", "new", "couple")
	link("next", "2")
	if err := os.Rename(filepath.Join(source, "next"), filepath.Join(source, "current")); err != nil {
		f.Fatal(err)
	}
	reads("newcouple")
}

func streams(f *fixture) {
	guid, _ := f.container()
	in := tarOf(entry{name: "dir/", mode: 0o755}, entry{name: "dir/a", content: "first", mode: 0o640}, entry{name: "dir/link", link: "a"})
	if err := f.backend.StreamIn(f.ctx, guid, "/job/new", f.User, in); err != nil {
		f.Fatalf("StreamIn: %v", err)
	}
	f.start(guid, WriteFile, func(s *executor.ProcessSpec) { s.Dir = "/job/new/dir" }).mustExit(executor.Exit{})
	got := f.streamOut(guid, "/job/new/dir")
	want := map[string]string{"dir/": "", "dir/a": "first", "dir/link": "-> a", "dir/result": "result"}
	if !maps.Equal(got, want) {
		f.Errorf("StreamOut gave %q, want %q", got, want)
	}
	if got := f.streamOut(guid, "/job/new/dir/result"); !maps.Equal(got, map[string]string{"result": "result"}) {
		f.Errorf("StreamOut of a file gave %q", got)
	}
}

func missingFile(f *fixture) {
	guid, _ := f.container()
	_, err := f.backend.StreamOut(f.ctx, guid, "/no/such/file", f.User)
	f.mustBe(err, executor.ErrNoFile)
}

func unsafeArchives(f *fixture) {
	outside := f.hostFile("secret", "untouched")
	for name, entries := range map[string][]entry{
		"a name that climbs":           {{name: "../../evil", content: "x"}},
		"an absolute name":             {{name: "/evil", content: "x"}},
		"a file through a link":        {{name: "l", link: "../.."}, {name: "l/evil", content: "x"}},
		"a file through absolute link": {{name: "l", link: strings.TrimSuffix(outside, "/secret")}, {name: "l/secret", content: "x"}},
		"a hard link that climbs":      {{name: "h", hard: "../../etc/passwd"}},
		"a device":                     {{name: "null", device: true}},
	} {
		guid, _ := f.container()
		err := f.backend.StreamIn(f.ctx, guid, "/job", f.User, tarOf(entries...))
		if !errors.Is(err, executor.ErrUnsafeArchive) {
			f.Errorf("%s: %v, want %v", name, err, executor.ErrUnsafeArchive)
		}
	}
}

func dial(f *fixture) {
	guid, endpoint := f.container(func(c *executor.ContainerSpec) { c.Ports = []uint16{8080, 8081} })
	if len(endpoint.Ports) != 2 || endpoint.Ports[0].ContainerPort != 8080 || endpoint.Ports[1].ContainerPort != 8081 {
		f.Fatalf("the ports are %v, want mappings of 8080 and 8081", endpoint.Ports)
	}
	port := endpoint.Ports[0].ContainerPort
	if endpoint.SharesHostNetwork {
		port = endpoint.Ports[0].HostPort
	}
	p := f.start(guid, Serve, func(s *executor.ProcessSpec) {
		s.Env = append(s.Env, executor.EnvVar{Name: "PORT", Value: fmt.Sprint(port)})
	})
	f.eventually("the server answers", func() bool {
		if e, ended := p.ended(); ended {
			f.Fatalf("the server has ended with %v: %s", e, p.stderr)
		}
		conn, err := f.backend.Dial(f.ctx, guid, 8080)
		if err != nil {
			return false
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil && response.StatusCode == http.StatusOK
	})
	if conn, err := f.backend.Dial(f.ctx, guid, 8081); err == nil {
		conn.Close()
		f.Error("somebody answers on the other port")
	}
}

func usage(f *fixture) {
	guid, _ := f.container()
	p := f.start(guid, Stubborn)
	p.mustSay("ready")
	m, err := f.backend.Usage(f.ctx, guid)
	if err != nil {
		f.Fatal(err)
	}
	if m.MemoryBytes < executor.Unknown || m.DiskBytes < executor.Unknown || m.CPU < executor.Unknown || m.ReceivedBytes < executor.Unknown || m.SentBytes < executor.Unknown || m.PIDs == 0 || m.PIDs < executor.Unknown {
		f.Errorf("%+v", m)
	}
}

func restart(f *fixture) {
	if f.Restart == nil {
		return
	}
	guid, _ := f.container()
	_, stubbornMustBeGone := f.hold(guid, Stubborn, "ready")
	_, orphanMustBeGone := f.hold(guid, Orphan, "gone")
	f.backend = f.Restart(f.T, f.backend)
	if got := f.list(); !slices.Equal(got, []string{guid}) {
		f.Fatalf("after a restart the list is %q, want %q", got, guid)
	}
	spec := f.spec()
	spec.GUID = guid
	_, err := f.backend.Create(f.ctx, spec)
	f.mustBe(err, executor.ErrContainerExists)
	if got := f.list(); !slices.Equal(got, []string{guid}) {
		f.Errorf("a Create that is refused leaves %q of the earlier daemon, want %q", got, guid)
	}
	f.delete(guid)
	stubbornMustBeGone()
	orphanMustBeGone()
	if got := f.list(); len(got) != 0 {
		f.Errorf("left behind: %q", got)
	}
	if _, err := f.backend.Create(f.ctx, spec); err != nil {
		f.Errorf("the guid cannot be used again: %v", err)
	}
	f.mustCount(guid, func(n int64) bool { return n == 0 })
}

func (f *fixture) mustBe(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("the error is %v, want %v", err, want)
	}
	var typed *executor.BackendError
	if !errors.As(err, &typed) || typed.GUID == "" {
		f.Errorf("the error %v names no container", err)
	}
}

// pids is the number of processes in a container, or executor.Unknown.
func (f *fixture) pids(guid string) int64 {
	f.Helper()
	m, err := f.backend.Usage(f.ctx, guid)
	if err != nil {
		f.Fatalf("Usage: %v", err)
	}
	return m.PIDs
}

// mustCount waits until the number of processes is right, where it is known.
func (f *fixture) mustCount(guid string, right func(int64) bool) {
	f.Helper()
	f.eventually("the number of processes is right", func() bool {
		n := f.pids(guid)
		return n == executor.Unknown || right(n)
	})
}

// streamOut is the content of a tar stream: files by name, links as "-> to".
func (f *fixture) streamOut(guid, path string) map[string]string {
	f.Helper()
	r, err := f.backend.StreamOut(f.ctx, guid, path, f.User)
	if err != nil {
		f.Fatalf("StreamOut: %v", err)
	}
	defer r.Close()
	files := map[string]string{}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			f.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			f.Fatal(err)
		}
		files[h.Name] = string(content)
		if h.Typeflag == tar.TypeSymlink {
			files[h.Name] = "-> " + h.Linkname
		}
	}
}

// An entry of a tar stream.
type entry struct {
	name, content, link, hard string
	device                    bool
	mode                      int64
}

func tarOf(entries ...entry) io.Reader {
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		switch {
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case e.hard != "":
			h.Typeflag, h.Linkname = tar.TypeLink, e.hard
		case e.device:
			h.Typeflag, h.Devmajor, h.Devminor = tar.TypeChar, 1, 3
		}
		if err := out.WriteHeader(h); err != nil {
			panic(err)
		}
		io.WriteString(out, e.content)
	}
	out.Close()
	return &b
}
