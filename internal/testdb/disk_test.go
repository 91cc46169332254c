package testdb

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func isMounted(t *testing.T, dir string) bool {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(mounts), " "+dir+" ")
}

func TestADiskOfAServerIsFullAndHasRoomAgain(t *testing.T) {
	for _, start := range []func(testing.TB) *Server{StartPostgresOnSmallDisk, StartMySQLOnSmallDisk} {
		var dir string
		t.Run("", func(t *testing.T) {
			server := start(t)
			dir = server.path("data")
			if !isMounted(t, dir) {
				t.Fatal("the data is on no disk of its own")
			}
			server.FillDisk(t)
			other := filepath.Join(dir, "other")
			if err := os.WriteFile(other, make([]byte, 1<<16), 0o600); err == nil {
				t.Error("there is still room")
			}
			server.EmptyDisk(t)
			if err := os.WriteFile(other, make([]byte, 1<<16), 0o600); err != nil {
				t.Error(err)
			}
			server.Revive(t)
			server.Kill(t)
			server.Start(t)
		})
		if isMounted(t, dir) {
			t.Errorf("%s is still mounted", dir)
		}
	}
}

// diskEnv names the directory on which a child process mounts a disk.
const diskEnv = "DIEGO_TESTDB_DISK"

func TestADiskGoesWithTheProcessThatHasMadeIt(t *testing.T) {
	if dir := os.Getenv(diskEnv); dir != "" {
		if _, err := mountDisk(dir, 1<<20); err != nil {
			t.Fatal(err)
		}
		if !isMounted(t, dir) {
			t.Fatal("it is not mounted")
		}
		os.Exit(7) // as a process does that runs into its time limit
	}
	SmallDisk(t, 1<<20) // says what is missing
	dir := filepath.Join(t.TempDir(), "disk")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), diskEnv+"="+dir)
	output, err := child.CombinedOutput()
	if child.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v\n%s", err, output)
	}
	for deadline := time.Now().Add(30 * time.Second); isMounted(t, dir); {
		if time.Now().After(deadline) {
			t.Fatalf("%s is still mounted", dir)
		}
		<-time.After(time.Millisecond)
	}
}
