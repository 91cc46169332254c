//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
	"github.com/diegosdk/diego/executor/manager"
)

// From nothing to a running program and back to nothing, through the Manager
// and by libcontainer alone with the same mounts and limits, in turns. A
// container of libcontainer's alone gets what ours has, made in the plainest way:
// with a network of its own, a pair of devices, addresses, a route and the files
// of /etc that say so, and with a disk limit a file system in a file. It gets no
// user namespace, no firewall and no log of its output, so it always does less.
// The figures are those of the median round, because other work of the machine
// spoils some.
func BenchmarkStartAndStop(b *testing.B) {
	for _, test := range []struct {
		name        string
		hostNetwork bool
		disk        int64
		sharedIDs   bool
	}{
		{"network=host", true, 0, false}, {"network=host+ids=shared", true, 0, true}, {"network=own", false, 0, false}, {"network=own+disk=64M", false, 64, false},
	} {
		for _, parallel := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/parallel=%d", test.name, parallel), func(b *testing.B) {
				f := newFixture(b, func(o *Options) { o.HostNetwork, o.SharedIDs = test.hostNetwork, test.sharedIDs })
				alone := newBare(b, f, test.disk) // before a manager that would take its container for a stray
				x := &deletionBackend{Backend: f.Backend, waiting: make(map[string]chan struct{})}
				m, stop := newManager(b, x)
				defer stop()
				const perWorker = 2
				var worked [2]time.Duration
				var rounds [2][]time.Duration
				n := 0
				round := func(side int, one func(guid string)) {
					start, before := time.Now(), processorTime()
					var workers sync.WaitGroup
					for w := range parallel {
						workers.Go(func() {
							for i := range perWorker {
								one(fmt.Sprintf("b-%d-%d-%d-%d", n, side, w, i))
							}
						})
					}
					workers.Wait()
					rounds[side] = append(rounds[side], time.Since(start))
					worked[side] += processorTime() - before
					n += perWorker * parallel
				}
				round(0, alone.cycle) // what is made once
				round(1, func(guid string) { throughManager(b, m, x, guid, test.disk) })
				rounds, worked, n = [2][]time.Duration{}, [2]time.Duration{}, 0
				for b.Loop() {
					round(0, alone.cycle)
					round(1, func(guid string) { throughManager(b, m, x, guid, test.disk) })
				}
				slices.Sort(rounds[0])
				slices.Sort(rounds[1])
				bare, ours := rounds[0][len(rounds[0])/2], rounds[1][len(rounds[1])/2]
				b.ReportMetric(float64(perWorker*parallel)/bare.Seconds(), "bare/s")
				b.ReportMetric(float64(perWorker*parallel)/ours.Seconds(), "containers/s")
				b.ReportMetric(bare.Seconds()/ours.Seconds(), "of-bare")
				b.ReportMetric(worked[1].Seconds()/worked[0].Seconds(), "bare's-processor-time")
			})
		}
	}
}

// processorTime is what this process and its children have used, also for the
// kernel. Other work on the machine hardly changes it.
func processorTime() (all time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return all
}

func newManager(b *testing.B, backend executor.ContainerBackend) (*manager.Manager, func()) {
	b.Helper()
	m, err := manager.New(context.Background(), manager.Options{
		Backend: backend, Dir: b.TempDir(), UsageInterval: 30 * time.Second,
		Capacity: manager.Capacity{MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: 1000}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	return m, func() { cancel(); running.Wait() }
}

const idle = "exec sleep 100000"

func throughManager(b *testing.B, m *manager.Manager, x *deletionBackend, guid string, diskMB int64) {
	news := m.Subscribe()
	defer news.Close()
	m.Reserve(manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 64, DiskMB: diskMB, MaxPIDs: 64}})
	err := m.Initialize(guid, manager.Work{RunInfo: executor.RunInfo{RootFS: "host:",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", idle}, User: "nobody"}}}})
	if err != nil {
		b.Error(err)
		return
	}
	await := func(over func() bool) {
		for !over() {
			if _, err := news.Next(context.Background()); err != nil {
				b.Error(err)
				return
			}
		}
	}
	await(func() bool {
		c, ok := m.Get(guid)
		if ok && c.State == executor.Completed {
			b.Errorf("it has ended: %+v", c.RunResult)
		}
		return !ok || c.State >= executor.Running
	})
	deleted := x.deleted(guid)
	m.Delete(guid)
	<-deleted
	for { // no event says that it is gone
		if _, ok := m.Get(guid); !ok {
			return
		}
		time.Sleep(20 * time.Microsecond) // between two looks
	}
}

// A deletionBackend says when it has deleted a container, so that nobody uses
// the processor to look for that.
type deletionBackend struct {
	*Backend
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

func (b *deletionBackend) deleted(guid string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	over := make(chan struct{})
	b.waiting[guid] = over
	return over
}

// Delete implements [executor.ContainerBackend].
func (b *deletionBackend) Delete(ctx context.Context, guid string) error {
	err := b.Backend.Delete(ctx, guid)
	b.mu.Lock()
	defer b.mu.Unlock()
	if over := b.waiting[guid]; over != nil && err == nil {
		close(over)
		delete(b.waiting, guid)
	}
	return err
}

// A bare is libcontainer without this package's part.
type bare struct {
	b     *testing.B
	f     *fixture
	dir   string
	image string   // the unpacked image of the host
	shown []string // directories of the host that appear in it

	// cgroups holds theirs, as those of a cell lie in one: on a busy machine, four
	// cgroups side by side get four times the processor time of one.
	cgroups *cgroup.Parent

	diskBytes int64
	blocks    map[int64][]byte // of an empty disk that are not empty, by their place

	wires atomic.Int32 // that were made
}

func newBare(b *testing.B, f *fixture, diskMB int64) *bare {
	guid, _ := f.create() // which unpacks the image
	f.delete(guid)
	base, err := cgroup.Base()
	if err != nil {
		b.Fatal(err)
	}
	x := &bare{
		b: b, f: f, dir: b.TempDir(), diskBytes: diskMB << 20, blocks: make(map[int64][]byte),
		cgroups: cgroup.NewParent(base, "bare-"+f.id),
	}
	if !x.cgroups.Own() {
		b.Fatal("somebody else has the cgroup of libcontainer's own containers")
	}
	b.Cleanup(x.cgroups.Close)
	if diskMB > 0 {
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB = diskMB }) // which makes the empty disk
		f.delete(guid)
		empty, err := os.ReadFile(filepath.Join(f.options.Dir, templatesDir, fmt.Sprintf("ext4-%dM", diskMB)))
		if err != nil {
			b.Fatal(err)
		}
		const size = 4096
		for at := 0; at < len(empty); at += size {
			if block := empty[at : at+size]; !bytes.Equal(block, make([]byte, size)) {
				x.blocks[int64(at)] = bytes.Clone(block)
			}
		}
	}
	images, err := filepath.Glob(filepath.Join(sharedImages, "*", "*", "usr"))
	if err != nil || len(images) != 1 {
		b.Fatalf("the images with a /usr are %q, %v", images, err)
	}
	x.image = filepath.Dir(images[0])
	for _, dir := range rootfs.HostPrograms {
		if info, err := os.Lstat(filepath.Join(x.image, dir)); err == nil && info.IsDir() {
			x.shown = append(x.shown, dir)
		}
	}
	return x
}

func (x *bare) cycle(guid string) {
	must := func(err error) {
		if err != nil {
			x.b.Error(guid, err)
		}
	}
	dir := filepath.Join(x.dir, guid)
	root := filepath.Join(dir, "root")
	if x.diskBytes > 0 {
		must(os.Mkdir(dir, 0o700))
		must(x.mountDisk(dir))
		defer func() { must(os.RemoveAll(dir)) }()
		defer func() { must(unix.Unmount(dir, 0)) }()
	}
	for _, d := range []string{root, dir + "/upper", dir + "/work"} {
		must(os.MkdirAll(d, 0o755))
	}
	must(unix.Mount("overlay", root, "overlay", 0, "lowerdir="+x.image+",upperdir="+dir+"/upper,workdir="+dir+"/work"))
	spec := executor.ContainerSpec{GUID: guid, Resources: executor.Resources{MemoryMB: 64, MaxPIDs: 64}}
	for _, dir := range x.shown {
		spec.Mounts = append(spec.Mounts, executor.Mount{Source: dir, Target: dir})
	}
	config := x.f.config(spec, ids.Range{}, root, nil)
	config.Cgroups.Path = x.cgroups.Path(guid)
	if !x.f.options.HostNetwork {
		config.Namespaces = append(config.Namespaces, configs.Namespace{Type: configs.NEWNET})
		config.Networks = []*configs.Network{{Type: "loopback"}}
	}
	if !x.f.options.HostNetwork {
		for _, file := range []string{"hostname", "hosts", "resolv.conf"} {
			must(os.WriteFile(filepath.Join(root, "etc", file), []byte(file), 0o644))
		}
	}
	c, err := libcontainer.Create(x.f.states, guid, config) // on a tmpfs, as runc does
	must(err)
	p := &libcontainer.Process{Args: []string{"/bin/sh", "-c", idle}, Env: []string{"PATH=/bin:/usr/bin"}, Cwd: "/", UID: 65534, GID: 65534, Init: true}
	must(c.Start(p))
	pid, err := p.Pid()
	must(err)
	if !x.f.options.HostNetwork {
		must(connect(pid, x.wires.Add(1)))
	}
	must(c.Exec())
	for { // until it has become the program
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		must(err)
		if !strings.HasPrefix(string(comm), "runc:[") {
			break
		}
		time.Sleep(200 * time.Microsecond) // between two looks
	}
	must(c.Signal(unix.SIGKILL))
	p.Wait()
	c.Status()
	must(c.Destroy())
	must(unix.Unmount(root, 0))
	if x.diskBytes == 0 {
		must(os.RemoveAll(dir))
	}
}

// connect gives the network namespace of a process a wire to the host. It ends
// with the namespace.
func connect(pid int, n int32) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	inside, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer inside.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("bare%d-%d", os.Getpid()%10000, n)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns)}); err != nil {
		return err
	}
	gateway := net.IPv4(10, 223, byte(n>>7), byte(n<<1)).To4()
	own := net.IPv4(10, 223, byte(n>>7), byte(n<<1)|1).To4()
	for _, end := range []struct {
		handle  *netlink.Handle
		name    string
		address net.IP
	}{{&netlink.Handle{}, attrs.Name, gateway}, {inside, "eth0", own}} {
		link, err := end.handle.LinkByName(end.name)
		if err != nil {
			return err
		}
		if err := end.handle.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: end.address, Mask: net.CIDRMask(31, 32)}}); err != nil {
			return err
		}
		if err := end.handle.LinkSetUp(link); err != nil {
			return err
		}
	}
	return inside.RouteAdd(&netlink.Route{Gw: gateway})
}

// mountDisk mounts a new disk at dir.
func (x *bare) mountDisk(dir string) error {
	file, err := os.Create(dir + ".img")
	if err != nil {
		return err
	}
	defer file.Close()
	defer os.Remove(file.Name())
	if err := file.Truncate(x.diskBytes); err != nil {
		return err
	}
	for at, block := range x.blocks {
		if _, err := file.WriteAt(block, at); err != nil {
			return err
		}
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer control.Close()
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer loop.Close()
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			return unix.Mount(loop.Name(), dir, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, "errors=remount-ro,barrier=0")
		}
		if err != unix.EBUSY { // somebody was faster
			return err
		}
	}
}

// What a process costs in a container that is there, as every probe is one: the
// time it takes, and the processor time of the daemon. As in a cell, the daemon is
// idle between two of them.
func BenchmarkProbe(b *testing.B) {
	f := newFixture(b)
	guid, _ := f.create()
	var took, spent time.Duration
	for b.Loop() {
		time.Sleep(10 * time.Millisecond) // until the daemon is idle
		ended := make(chan struct{})
		before, began := ownTime(b), time.Now()
		health := &output{}
		if _, err := f.Start(f.ctx, guid, executor.ProcessSpec{Path: "/bin/true", User: "nobody", Stdout: health, Stderr: health, Exited: func(executor.Exit) { close(ended) }}); err != nil {
			b.Fatal(err)
		}
		<-ended
		took += time.Since(began)
		spent += ownTime(b) - before
	}
	b.ReportMetric(0, "ns/op") // most of which is the pauses
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs/op")
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "µs-of-daemon/op")
}

// ownTime is the processor time of this process, also for the kernel.
func ownTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What a cell costs whose containers do nothing, while a monitor looks after
// each of them every half minute. They are started as fast as the manager does.
func BenchmarkIdleContainers(b *testing.B) {
	for _, count := range []int{250, 1000} {
		b.Run(fmt.Sprintf("containers=%d", count), func(b *testing.B) { idleContainers(b, count) })
	}
}

func idleContainers(b *testing.B, count int) {
	const span = time.Minute // twice as long as between two looks of a monitor
	f := newFixture(b)
	heap := func() (bytes uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	n := float64(count)
	for b.Loop() {
		m, stop := newManager(b, f.Backend)
		c := &cell{m, f, m.Subscribe()}
		bytes, before := heap(), costs(b)
		guid := func(i int) string { return fmt.Sprintf("idle-%d", i) }
		began := time.Now()
		for i := range count {
			c.launch(guid(i), modest, edited(script("nobody", idle), func(w *executor.Work) {
				w.Ports = []uint16{8080}
				w.Monitor = &executor.Action{Run: &executor.RunAction{Path: "/bin/true", User: "nobody"}}
			}))
		}
		for i := range count {
			if now := c.await(guid(i), executor.Running); now.State != executor.Running {
				b.Errorf("it is %v: %+v", now.State, now.RunResult)
			}
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-start")
		var inContainers int64
		for i := range count {
			m, err := c.Usage(f.ctx, guid(i))
			if err != nil {
				b.Error(err)
			}
			inContainers += m.MemoryBytes
		}
		more := costs(b).since(before)
		b.ReportMetric(float64(heap()-bytes)/n/1024, "KiB/container")
		b.ReportMetric(float64(more.files)/n, "files/container")
		b.ReportMetric(float64(more.goroutines)/n, "goroutines/container")
		b.ReportMetric(float64(more.threads)/n, "threads/container")
		b.ReportMetric(float64(inContainers)/n/1024, "KiB-inside/container")
		used := ownTime(b)
		time.Sleep(span) // what is measured
		b.ReportMetric(float64(ownTime(b)-used)/float64(span)*100, "%core")
		began = time.Now()
		for i := range count {
			c.Delete(guid(i))
		}
		for len(c.List()) > 0 && f.ctx.Err() == nil {
			time.Sleep(time.Millisecond) // between two looks
		}
		if n := len(c.List()); n > 0 {
			b.Fatalf("%d containers are not deleted", n)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-delete")
		c.news.Close()
		stop()
	}
}

// Requests to a server in a container through the port mapping, and to the
// same server without one, in turns.
func BenchmarkPortMapping(b *testing.B) {
	f := newFixture(b)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	guid, endpoint := f.create(func(c *executor.ContainerSpec) {
		c.Ports = []uint16{8080}
		c.Mounts = []executor.Mount{{Source: exe, Target: "/serve"}}
	})
	f.as("nobody", guid, "", func(s *executor.ProcessSpec) {
		s.Path, s.Args, s.Env = "/serve", nil, []executor.EnvVar{{Name: "BACKENDTEST_SERVE", Value: "1"}, {Name: "PORT", Value: "8080"}}
	})
	f.eventually("the server answers", func() bool {
		c, err := f.Dial(f.ctx, guid, 8080)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	direct, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer direct.Close()
	// The direct server is another process too, in the host's network.
	direct.Close()
	server := hostServer(b, exe, direct.Addr().(*net.TCPAddr).Port)
	defer server()
	for _, keepAlive := range []bool{true, false} {
		b.Run(fmt.Sprintf("keepalive=%v", keepAlive), func(b *testing.B) {
			addresses := [2]string{direct.Addr().String(), fmt.Sprintf("127.0.0.1:%d", endpoint.Ports[0].HostPort)}
			var rates [2][]float64
			for b.Loop() {
				for side, address := range addresses {
					rates[side] = append(rates[side], rate(b, address, keepAlive))
				}
			}
			for side := range rates {
				slices.Sort(rates[side])
			}
			d, m := rates[0][len(rates[0])/2], rates[1][len(rates[1])/2]
			b.ReportMetric(d, "direct/s")
			b.ReportMetric(m, "mapped/s")
			b.ReportMetric(m/d, "of-direct")
		})
	}
}

// rate is how many requests are answered in a second.
func rate(b *testing.B, address string, keepAlive bool) float64 {
	transport := &http.Transport{DisableKeepAlives: !keepAlive, MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var count atomic.Int64
	const span = 300 * time.Millisecond
	start := time.Now()
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for time.Since(start) < span {
				r, err := client.Get("http://" + address)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				count.Add(1)
			}
		})
	}
	workers.Wait()
	return float64(count.Load()) / time.Since(start).Seconds()
}

func hostServer(b *testing.B, exe string, port int) (stop func()) {
	p, err := os.StartProcess(exe, []string{exe}, &os.ProcAttr{
		Env: append(os.Environ(), "BACKENDTEST_SERVE=1", fmt.Sprintf("PORT=%d", port)), Files: []*os.File{nil, nil, os.Stderr}})
	if err != nil {
		b.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // between two looks
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
	return func() { p.Kill(); p.Wait() }
}

// BenchmarkBesideManyConnections measures how long new connections take beside eleven
// containers that begin and end some without a pause, for as long as the kernel remembers
// those that have ended and longer.
func BenchmarkBesideManyConnections(b *testing.B) {
	const lasts = 150 * time.Second
	f := newFixture(b)
	server, _ := outside(f)
	var ports []string
	for range 8 { // a client has some 28,000 ports for each
		l, err := net.Listen("tcp", server.Addr().String()+":0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		ports = append(ports, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
		for range 2 {
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					c.Close()
				}
			}()
		}
	}
	for range 11 {
		guid, _ := f.create()
		f.as("nobody", guid, fmt.Sprintf(`exec perl -MSocket -e 'for (1 .. 7) { fork or last }
			my @to = map { pack_sockaddr_in($_, inet_aton("%v")) } %s;
			while (1) { for (@to) { socket(my $s, PF_INET, SOCK_STREAM, 6); connect($s, $_) } }'`, server.Addr(), strings.Join(ports, ",")))
	}
	neighbour, _ := f.create()
	var fullest float64
	longest := map[string]time.Duration{}
	for b.Loop() {
		for began := time.Now(); time.Since(began) < lasts; time.Sleep(100 * time.Millisecond) {
			for who, connect := range map[string]func() bool{
				"host": func() bool {
					c, err := net.DialTimeout("tcp", server.String(), patience)
					if err == nil {
						c.Close()
					}
					return err == nil
				},
				"neighbour": func() bool { return reaches(f, neighbour, "tcp", server) },
			} {
				start := time.Now()
				for !connect() {
				}
				longest[who] = max(longest[who], time.Since(start))
			}
			fullest = max(fullest, tracked(b))
		}
	}
	b.ReportMetric(fullest, "full")
	b.ReportMetric(longest["host"].Seconds(), "host-s")
	b.ReportMetric(longest["neighbour"].Seconds(), "neighbour-s")
}

// tracked is how much of the kernel's table of connections is in use, up to 1.
func tracked(t testing.TB) float64 {
	var numbers [2]float64
	for i, name := range []string{"count", "max"} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name)
		if err == nil {
			numbers[i], err = strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return numbers[0] / numbers[1]
}
