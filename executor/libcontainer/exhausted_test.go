//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/testenv"
)

// fewInodes is a directory on a file system of its own that holds few files.
func fewInodes(t *testing.T, inodes int) (dir string) {
	t.Helper()
	testenv.Root(t)
	image := filepath.Join(t.TempDir(), "image")
	dir = t.TempDir()
	for _, command := range [][]string{
		{"truncate", "--size=256M", image},
		{"mkfs.ext4", "-q", "-F", "-N", fmt.Sprint(inodes), image},
		{"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			testenv.Missing(t, "a small file system", fmt.Sprintf("%v: %s", err, out))
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// inodesLeft are those of a file system.
func inodesLeft(t *testing.T, dir string) uint64 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return s.Ffree
}

// takeInodes makes files below a directory until there can be no more, and
// returns a function that removes one of them.
func takeInodes(t *testing.T, dir string) (giveBack func()) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	if err := os.Mkdir(filler, 0o700); err != nil {
		t.Fatal(err)
	}
	count := 0
	for ; ; count++ {
		err := os.WriteFile(filepath.Join(filler, fmt.Sprint(count)), nil, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		count--
		if err := os.Remove(filepath.Join(filler, fmt.Sprint(count))); err != nil {
			t.Fatal(err)
		}
	}
}

// Somebody has used up what Options.Dir can hold of files: whichever part of a
// container fails for it, nothing stays, and the neighbours go on.
func TestWhereverInodesEndInMakingAContainerNothingOfItStays(t *testing.T) {
	for _, test := range []struct {
		name string
		disk int64
	}{{"without a disk", 0}, {"with a disk", 16}} {
		t.Run(test.name, func(t *testing.T) {
			dir := fewInodes(t, 512)
			f := newFixture(t, func(o *Options) { o.Dir = filepath.Join(dir, "cell") })
			edit := func(c *executor.ContainerSpec) { c.Resources.DiskMB, c.Ports = test.disk, []uint16{80} }
			neighbour, _ := f.create(edit)
			giveBack := takeInodes(t, dir)
			const most = 64 // files of a container
			for given := 0; ; given++ {
				before, left := traces(t, f.Backend), inodesLeft(t, dir)
				spec := f.spec(edit)
				_, err := f.Create(f.ctx, spec)
				if err == nil {
					if given == 0 {
						t.Error("a container takes no file")
					}
					if exit := f.as("nobody", spec.GUID, "exit 3").end(); exit.Status != 3 {
						t.Errorf("with %d inodes it ended with %+v", given, exit)
					}
					f.delete(spec.GUID)
					break
				}
				if given == most {
					t.Fatalf("%d inodes are not enough for a container: %v", given, err)
				}
				if !errors.Is(err, executor.ErrNoRoom) || !strings.Contains(err.Error(), "too few inodes, which df and df -i show") {
					t.Errorf("with %d inodes: %v", given, err)
				}
				if after := traces(t, f.Backend); !slices.Equal(before, after) {
					t.Errorf("with %d inodes it has left something: %q, before %q", given, after, before)
				}
				f.eventually("all inodes are given back", func() bool { return inodesLeft(t, dir) >= left }) // the kernel may still end its mounts
				giveBack()
			}
			if exit := f.as("nobody", neighbour, "exit 3").end(); exit.Status != 3 {
				t.Errorf("the neighbour ended with %+v", exit)
			}
		})
	}
}

// A daemon that fails for want of inodes is killed at each stage of that, and the
// next one has to clean up without any.
func TestADaemonWithoutInodesMayBeKilledAtAnyStage(t *testing.T) {
	dir := fewInodes(t, 512)
	cell := filepath.Join(dir, "cell")
	first := openBackend(t, Options{Dir: cell})
	if _, err := first.Create(t.Context(), full("a")); err != nil { // makes what is made once
		t.Fatal(err)
	}
	if err := errors.Join(first.Delete(t.Context(), "a"), first.Close()); err != nil {
		t.Fatal(err)
	}
	giveBack := takeInodes(t, dir)
	giveBack() // one: its directory takes that, and there is none for its disk
	const tooMany = 50
	for n := 1; ; n++ {
		if n == tooMany {
			t.Fatalf("there are more than %d stages", tooMany)
		}
		left := inodesLeft(t, dir)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), daemonDir+"="+cell, daemonStage+"="+poor+fmt.Sprint(n))
		out, err := cmd.CombinedOutput()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!ok || status.Signal() != syscall.SIGKILL) {
			t.Fatalf("stage %d: %v: %s", n, err, out)
		}
		t.Run(fmt.Sprintf("stage %d", n), func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Dir = cell })
			f.eventually("what ran has ended", func() bool { return !running(t, f.Backend) })
			f.delete("a")
			if got := traces(t, f.Backend); len(got) != 1 { // the table
				t.Errorf("it has left %q", got)
			}
			f.eventually("all inodes are given back", func() bool { return inodesLeft(t, dir) >= left })
		})
		if err == nil {
			const fewest = 8 // or the stages are not where they should be
			if n < fewest {
				t.Errorf("there are only %d stages", n)
			}
			return
		}
	}
}

// An image that is only half there is none.
func TestAnImageForWhichThereAreTooFewInodesIsUnpackedOnceThereAreEnough(t *testing.T) {
	dir := fewInodes(t, 512)
	cell := filepath.Join(dir, "cell")
	if err := os.MkdirAll(filepath.Join(cell, imagesDir), 0o711); err != nil { // instead of those that all tests share
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "image.tar")
	var entries []entry
	const files = 100
	for i := range files {
		entries = append(entries, entry{name: fmt.Sprintf("files/%d", i)})
	}
	if err := os.WriteFile(image, tarOf(entries...), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) { o.Dir, o.ImageDirs = cell, []string{filepath.Dir(image)} })
	ofThisBoot, err := rootfs.OfThisBoot(filepath.Join(cell, imagesDir), f.trash())
	if err == nil {
		err = os.Mkdir(ofThisBoot, 0o700) // which stays if an image does not fit
	}
	if err != nil {
		t.Fatal(err)
	}
	giveBack := takeInodes(t, dir)
	for range files {
		giveBack()
	}
	before, left := traces(t, f.Backend), inodesLeft(t, dir)
	edit := func(c *executor.ContainerSpec) { c.RootFS = "tar://" + image }
	if _, err := f.Create(f.ctx, f.spec(edit)); !errors.Is(err, executor.ErrNoRoom) || !strings.Contains(err.Error(), "too few inodes") {
		t.Errorf("with %d inodes for %d files: %v", left, files, err)
	}
	if after := traces(t, f.Backend); !slices.Equal(before, after) {
		t.Errorf("it has left something: %q, before %q", after, before)
	}
	f.eventually("all inodes are given back", func() bool { return inodesLeft(t, dir) >= left })
	for range 40 {
		giveBack()
	}
	guid, _ := f.create(edit)
	if found, err := filepath.Glob(filepath.Join(cell, imagesDir, "*/*/files/*")); err != nil || len(found) != files {
		t.Errorf("%s has %d files of %d, %v", guid, len(found), files, err)
	}
}

// takeBlocks makes a file that leaves few blocks of the file system of a directory.
func takeBlocks(t *testing.T, dir string, left int64) (name string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "blocks"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const block = 4 << 10
	size := int64(0)
	for more := int64(1 << 30); more >= block; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, more); {
		case err == nil:
			size += more
		case errors.Is(err, unix.ENOSPC):
			more /= 2
		default:
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size - left*block); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// mkfs says in words that there was no room.
func TestADiskOfANewSizeForWhichThereIsNoRoomIsMadeOnceThereIs(t *testing.T) {
	dir := fewInodes(t, 512)
	f := newFixture(t, func(o *Options) { o.Dir = filepath.Join(dir, "cell") })
	disk := func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 }
	blocks := takeBlocks(t, dir, 3)
	if _, err := f.Create(f.ctx, f.spec(disk)); !errors.Is(err, executor.ErrNoRoom) || !strings.Contains(err.Error(), "mkfs.ext4") {
		t.Errorf("without room: %v", err)
	}
	if err := os.Remove(blocks); err != nil {
		t.Fatal(err)
	}
	f.create(disk)
}

// Who has used up what Options.Dir can hold must not get the daemon, which may
// then start again, to run everybody with the ids of the host.
func TestADaemonThatStartsWithoutInodesSharesNoIDs(t *testing.T) {
	dir := fewInodes(t, 512)
	cell := filepath.Join(dir, "cell")
	for _, name := range []string{containersDir, templatesDir} { // of an earlier start
		if err := os.MkdirAll(filepath.Join(cell, name), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	if err := openBackend(t, Options{Dir: cell}).Close(); err != nil {
		t.Fatal(err)
	}
	giveBack := takeInodes(t, dir)
	f := newFixture(t, func(o *Options) { o.Dir = cell })
	if _, err := f.Create(f.ctx, f.spec()); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a container without an inode: %v", err)
	}
	for range 32 {
		giveBack()
	}
	guid, _ := f.create()
	if !f.containers[guid].ids.Own() {
		t.Error("it has the ids of the host")
	}
}

// After a boot the images of the one before are of no use, and on a full disk only
// their removal makes room. The daemon must start to remove them.
func TestADaemonThatStartsAfterABootWithoutInodesMakesRoomFromOldImages(t *testing.T) {
	for name, lost := range map[string]bool{"something was set aside before": true, "nothing was": false} {
		t.Run(name, func(t *testing.T) {
			dir := fewInodes(t, 512)
			cell := filepath.Join(dir, "cell")
			for _, made := range []string{containersDir, templatesDir, imagesDir + "/boot-of-yesterday/image/usr"} {
				if err := os.MkdirAll(filepath.Join(cell, made), 0o711); err != nil {
					t.Fatal(err)
				}
			}
			old := filepath.Join(cell, imagesDir, "boot-of-yesterday")
			for i := range 64 {
				if err := os.WriteFile(filepath.Join(old, "image/usr", fmt.Sprint(i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if lost {
				if err := os.Mkdir(filepath.Join(cell, lostDir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			takeInodes(t, dir)
			image := filepath.Join(t.TempDir(), "image.tar")
			if err := os.WriteFile(image, tarOf(entry{name: "etc/"}), 0o600); err != nil {
				t.Fatal(err)
			}
			small := func(c *executor.ContainerSpec) { c.RootFS = "tar://" + image }
			f := newFixture(t, func(o *Options) { o.Dir, o.ImageDirs = cell, []string{filepath.Dir(image)} })
			if exists(old) {
				t.Error("the old images are still where they were")
			}
			if aside, err := f.Aside(f.ctx); err != nil || len(aside) != 1 {
				t.Errorf("set aside are %+v, %v", aside, err)
			}
			if _, err := f.Create(f.ctx, f.spec(small)); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("a container beside them: %v", err)
			}
			if left, err := f.Sweep(f.ctx); err != nil || len(left) > 0 {
				t.Errorf("left are %+v, %v", left, err)
			}
			f.create(small)
		})
	}
}

func TestALackOfRoomThatIsReportedAsTextIsRecognized(t *testing.T) {
	for text, full := range map[string]bool{
		"mkdir /x: no space left on device":                   true,
		"mkdir /x: permission denied":                         false,
		"mkdir /no space left on device/x: permission denied": false,
	} {
		cause := errors.New(text)
		err := new(container).errFirst(cause)
		if errors.Is(err, unix.ENOSPC) != full || !errors.Is(err, cause) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What fills the disk of a container or what somebody says of room must not cost what
// others have on the disk of the cell.
func TestOnlyAFullDiskOfTheCellIsNamedAsFull(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		name, want string
		edit       func(*executor.ContainerSpec)
	}{
		{"its own disk", "its disk of 2 MiB is too small for its files", func(c *executor.ContainerSpec) {
			c.Resources.DiskMB, c.Files = 2, []executor.File{{Path: "/large", Content: strings.Repeat("x", 3<<20)}}
		}},
		{"a small file system in it", "no space left on device", func(c *executor.ContainerSpec) {
			c.Files = []executor.File{{Path: "/dev/shm/large", Content: strings.Repeat("x", 65<<20)}}
		}},
		{"words", "no such root file system", func(c *executor.ContainerSpec) { c.RootFS = "dir:///no space left on device" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := f.Create(f.ctx, f.spec(test.edit))
			if err == nil || errors.Is(err, executor.ErrNoRoom) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// The inodes of a container's disk are its own.
func TestATenantThatUsesUpTheInodesOfItsDiskHarmsNobodyElse(t *testing.T) {
	f := newFixture(t)
	disk := func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 }
	guid, _ := f.create(disk)
	neighbour, _ := f.create(disk)
	if exit := f.as("nobody", guid, "i=0; while (: >/tmp/$i) 2>/dev/null; do i=$((i+1)); done; test $i -gt 500").end(); !exit.Success() {
		t.Errorf("a disk of 16 MiB held few files: %+v", exit)
	}
	if err := f.StreamIn(f.ctx, guid, "/tmp", "nobody", bytes.NewReader(tarOf(entry{name: "more"}))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a file for which there is no inode: %v", err)
	}
	if exit := f.as("nobody", guid, "rm /tmp/1 && exit 3").end(); exit.Status != 3 {
		t.Errorf("a process in it ended with %+v", exit)
	}
	if err := f.StreamIn(f.ctx, guid, "/tmp", "nobody", bytes.NewReader(tarOf(entry{name: "more"}))); err != nil {
		t.Errorf("after one was removed: %v", err)
	}
	if exit := f.as("nobody", neighbour, ": >/tmp/x && exit 3").end(); exit.Status != 3 {
		t.Errorf("a process of the neighbour ended with %+v", exit)
	}
	f.create(disk)
}

// The manager keeps logs and downloads beside the backend's files.
func TestWithoutInodesForItsOwnFilesAManagerGoesOn(t *testing.T) {
	dir := fewInodes(t, 64)
	own := filepath.Join(dir, "manager")
	f := newFixture(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(tarOf(entry{name: "f", content: "said\n", mode: 0o644}))
	}))
	defer server.Close()
	withDependency := func(w *executor.Work) {
		w.CachedDependencies = []executor.CachedDependency{{Name: "d", From: server.URL, To: "/app", CacheKey: "d"}}
	}
	m, stop := startManager(t, f.Backend, own)
	c := &cell{m, f, m.Subscribe()}
	c.launch("before", modest, script("nobody", "until test -e /tmp/go; do sleep 0.01; done; echo said"))
	if now := c.await("before", executor.Running); now.State != executor.Running {
		t.Fatalf("it is %v: %+v", now.State, now.RunResult)
	}
	giveBack := takeInodes(t, dir)

	f.as("nobody", "before", ": >/tmp/go").end() // the end of its container may kill it
	if r := c.result("before"); r.Failed {
		t.Errorf("what had begun before ended with %+v", r)
	}
	c.launch("without", modest, script("nobody", "echo said"))
	if r := c.result("without"); r.Failed {
		t.Errorf("what had no file for its output ended with %+v", r)
	}
	c.launch("download", modest, edited(script("nobody", "cat /app/f"), withDependency))
	if r := c.result("download"); !r.Retryable || !strings.Contains(r.FailureReason, "cached dependency d: ") || !strings.Contains(r.FailureReason, "no space left") {
		t.Errorf("what had no file for its download ended with %+v", r)
	}
	c.remove("before", "without", "download")
	c.news.Close()
	stop()

	m, stop = startManager(t, f.Backend, own)
	c = &cell{m, f, m.Subscribe()}
	c.launch("again", modest, script("nobody", "echo said"))
	if r := c.result("again"); r.Failed {
		t.Errorf("under the next manager it ended with %+v", r)
	}
	for range 20 {
		giveBack()
	}
	c.launch("after", modest, edited(script("nobody", "cat /app/f"), withDependency))
	if r := c.result("after"); r.Failed || !strings.HasSuffix(c.log("after", manager.Stdout), "\nsaid\n") {
		t.Errorf("once there are inodes: %+v, %q", r, c.log("after", manager.Stdout))
	}
	c.remove("again", "after")
	c.news.Close()
	stop()
}
