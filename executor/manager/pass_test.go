package manager_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// A witness is a backend with every feature that notes what it is asked. It is
// used by one goroutine, which calls Tick.
type witness struct {
	*scripted.Backend
	specs    []executor.ContainerSpec
	patience []time.Duration // of each Dial
	paths    chan string     // of requests, unless nil
}

func (w *witness) Probe(ctx context.Context) (executor.Host, error) {
	h, err := w.Backend.Probe(ctx)
	for _, d := range executor.Demands() {
		if !h.Has(d.Feature) {
			h.Features = append(slices.Clip(h.Features), executor.Feature{Name: d.Feature})
		}
	}
	return h, err
}

func (w *witness) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	w.specs = append(w.specs, spec)
	return w.Backend.Create(ctx, spec)
}

func (w *witness) Dial(ctx context.Context, _ string, _ uint16) (io.ReadWriteCloser, error) {
	deadline, _ := ctx.Deadline()
	w.patience = append(w.patience, time.Until(deadline))
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		if r, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
			w.paths <- r.URL.Path
			_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	return here, nil
}

// A mounter notes what it is to mount.
type mounter []executor.VolumeMount

func (m *mounter) Mount(_ context.Context, _ string, v executor.VolumeMount) (string, error) {
	*m = append(*m, v)
	return "/volumes/" + v.ContainerDir, nil
}

func (*mounter) Unmount(context.Context, string, executor.VolumeMount) error { return nil }

func witnessed(t *testing.T, edit ...func(*manager.Options)) (*cell, *witness) {
	w := &witness{}
	return newCell(t, append(edit, func(o *manager.Options) {
		w.Backend = o.Backend.(*scripted.Backend)
		o.Backend = w
	})...), w
}

func TestWhatTheWorkSaysReachesTheBackendAndTheDrivers(t *testing.T) {
	var mounted mounter
	c, w := witnessed(t, func(o *manager.Options) {
		o.Volumes = map[string]manager.VolumeDriver{"local": &mounted}
		o.TrustedCertificates = "/etc/ssl/certs"
	})
	shared := executor.VolumeMount{Driver: "local", ContainerDir: "shared", Mode: executor.MountReadOnly,
		Shared: &executor.SharedDevice{VolumeID: "v1", MountConfig: `{"uid":7}`}}
	dedicated := executor.VolumeMount{Driver: "local", ContainerDir: "own", Mode: executor.MountReadWrite,
		Dedicated: &executor.DedicatedDevice{MounterID: "m1", MountConfig: "fast"}}
	want := executor.ContainerSpec{
		GUID: "c", RootFS: "preloaded:linux", Resources: executor.Resources{MemoryMB: 100, DiskMB: 100, MaxPIDs: manager.DefaultMaxPIDs}, CPUWeight: 7, Privileged: true,
		Ports: []uint16{8080, 9090}, EgressRules: []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"10.0.0.1"}}},
		NetworkProperties: map[string]string{"app": "a1"}, CertificateProperties: &executor.CertificateConfig{OrganizationalUnit: []string{"app:a1"}},
		ImageUsername: "u", ImagePassword: "p", Files: []executor.File{{Path: "/conf/a", Content: "b"}},
		Mounts: []executor.Mount{
			{Source: "/etc/ssl/certs", Target: "/certs"}, {Source: "/volumes/shared", Target: "shared"}, {Source: "/volumes/own", Target: "own", Writable: true},
		},
	}
	c.launch("c", manager.Work{
		RunInfo: executor.RunInfo{
			RootFS: want.RootFS, Action: do("wait forever"), CPUWeight: want.CPUWeight, Privileged: true, Ports: want.Ports, EgressRules: want.EgressRules,
			Network: &executor.Network{Properties: want.NetworkProperties}, CertificateProperties: want.CertificateProperties,
			VolumeMountedFiles: want.Files, TrustedSystemCertificatesPath: "/certs", VolumeMounts: []executor.VolumeMount{shared, dedicated},
		},
		ImageUsername: "u", ImagePassword: "p",
	})
	c.advance(time.Second)
	if diff := cmp.Diff([]executor.ContainerSpec{want}, w.specs); diff != "" {
		t.Errorf("the spec (-want +got):\n%s", diff)
	}
	if got, _ := c.Get("c"); got.RunInfo == nil || got.RunInfo.VolumeMountedFiles != nil {
		t.Errorf("the manager keeps %+v, want no files", got.RunInfo)
	}
	if diff := cmp.Diff(mounter{shared, dedicated}, mounted); diff != "" {
		t.Errorf("the driver is asked for (-want +got):\n%s", diff)
	}
}

func TestFilesAreAskedForWhenTheContainerIsMade(t *testing.T) {
	files, gone := []executor.File{{Path: "/conf/a", Content: "b"}}, errors.New("they are gone")
	c, w := witnessed(t)
	for guid, err := range map[string]error{"c": nil, "d": gone} {
		c.launch(guid, with(work(do("wait forever")), func(w *manager.Work) {
			w.Files = func(context.Context) ([]executor.File, error) { return files, err }
		}))
	}
	c.advance(time.Second)
	if len(w.specs) != 1 || w.specs[0].GUID != "c" || !slices.Equal(w.specs[0].Files, files) {
		t.Errorf("the backend makes %+v", w.specs)
	}
	if got, _ := c.Get("d"); got.State != executor.Completed || !strings.Contains(got.RunResult.FailureReason, "failed to create the container: files: they are gone") {
		t.Errorf("the container without files is %v, %+v", got.State, got.RunResult)
	}
}

func TestAProbeWaitsAsLongAsItsCheckSaysAndAsksForItsPath(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	c, w := witnessed(t)
	w.paths = make(chan string, 100)
	c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
		w.Check = &executor.CheckDefinition{Checks: []executor.Check{
			{HTTP: &executor.HTTPCheck{Port: 80, Path: "/health", RequestTimeoutMs: hour}}, {TCP: &executor.TCPCheck{Port: 81, ConnectTimeoutMs: hour}},
		}}
	}))
	c.advance(time.Second)
	c.mustTell("0s RUNNING")
	if got := <-w.paths; got != "/health" {
		t.Errorf("the check asks for %s", got)
	}
	if len(w.patience) != 2 || w.patience[0] < time.Minute || w.patience[1] < time.Minute {
		t.Errorf("the checks wait for %v, want an hour each", w.patience)
	}
}

// A server that never takes what it is sent would leave it in memory of the kernel that
// counts for no container, after each request. One that sends headers without end would
// take processor time of the daemon.
func TestACheckLeavesNothingBehindAndReadsNoHeaders(t *testing.T) {
	for name, test := range map[string]struct {
		answer  []string
		healthy bool
		ends    error // what the server sees
	}{
		"a silent server":             {nil, false, syscall.ECONNRESET},
		"a status is enough":          {[]string{"HTTP/1.1 200 OK\r\nX-Header: that does not end"}, true, syscall.ECONNRESET},
		"a line without an end":       {[]string{strings.Repeat("HTTP/1.1 200 OK", 1000)}, false, syscall.ECONNRESET},
		"a server that takes a while": {[]string{"HTTP/1.1 200 OK\r\n", "X-Header: text\r\n", "\r\n", "body"}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			ended := make(chan error, 1)
			go func() {
				conn, err := listener.Accept()
				if err == nil {
					defer conn.Close()
					for _, part := range test.answer {
						if _, err = io.WriteString(conn, part); err != nil {
							break
						}
						time.Sleep(5 * time.Millisecond)
					}
					if err == nil && test.ends != nil {
						_, err = io.Copy(io.Discard, conn)
					}
				}
				ended <- err
			}()
			c := newCell(t, func(o *manager.Options) { o.Backend = &caller{o.Backend.(*scripted.Backend), listener.Addr().String()} })
			c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
				w.Ports, w.Check = []uint16{8080}, &executor.CheckDefinition{Checks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 8080, RequestTimeoutMs: 100}}}}
			}))
			c.advance(0)
			if err := <-ended; !errors.Is(err, test.ends) {
				t.Errorf("the connection ends with %v, want %v", err, test.ends)
			}
			if got, _ := c.Get("c"); (got.State == executor.Running) != test.healthy {
				t.Errorf("it is %v", got.State)
			}
		})
	}
}

// A caller connects to an address of the host.
type caller struct {
	*scripted.Backend
	address string
}

func (c *caller) Dial(ctx context.Context, _ string, _ uint16) (io.ReadWriteCloser, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", c.address)
}
