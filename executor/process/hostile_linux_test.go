package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/internal/testenv"
)

// compile makes a program from C.
func compile(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		testenv.Missing(t, "a compiler of C", err.Error())
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), cc, "-pthread", "-o", file, file+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func waitFor(t *testing.T, out *testenv.Output) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.HasSuffix(out.String(), "\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	return strings.TrimSpace(out.String())
}

// Linux shows such a process as a zombie until its last thread ends.
func TestAProcessWhoseMainThreadHasEndedEndsWithItsContainer(t *testing.T) {
	program := compile(t, `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *live(void *x) { sleep(60); _exit(0); }
int main(void) {
	if (fork()) _exit(0);
	setsid();
	if (fork()) _exit(0);
	pthread_t t;
	pthread_create(&t, 0, live, 0);
	printf("%d\n", getpid());
	fflush(stdout);
	close(0); close(1); close(2);
	pthread_exit(0);
}`)
	b, _ := newContainer(t, process.Options{})
	var out testenv.Output
	ended := make(chan executor.Exit, 1)
	if _, err := b.Start(t.Context(), "c", executor.ProcessSpec{Path: program, Stdout: &out, Exited: func(e executor.Exit) { ended <- e }}); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(waitFor(t, &out))
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := errors.Join(b.Signal(t.Context(), "c", executor.Kill), b.Delete(t.Context(), "c")); err != nil {
		t.Fatal(err)
	}
	if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); err == nil && len(threads) > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("it outlives its container, with %d threads", len(threads))
	}
}

// bigEnvironment lets any user's process show more as its environment than any memory has.
const bigEnvironment = `
#include <sys/prctl.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int c, char **v) {
	size_t n = (size_t)atol(v[1]) << 20;
	alarm(60);
	char *p = mmap(0, n, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0), b[4096];
	FILE *f = fopen("/proc/self/stat", "r");
	b[fread(b, 1, 4095, f)] = 0;
	unsigned long s[60] = {0};
	int i = 3;
	for (char *t = strtok(strrchr(b, ')') + 2, " "); t; t = strtok(0, " ")) s[i++] = strtoul(t, 0, 10);
	struct prctl_mm_map m = {.start_code = s[26], .end_code = s[27], .start_data = s[45], .end_data = s[46],
		.start_brk = s[47], .brk = (unsigned long)sbrk(0), .start_stack = s[28], .arg_start = s[48], .arg_end = s[49],
		.env_start = (unsigned long)p, .env_end = (unsigned long)p + n, .exe_fd = -1};
	puts(prctl(PR_SET_MM, PR_SET_MM_MAP, &m, sizeof m, 0) ? "refused" : "ok");
	fflush(stdout);
	pause();
}`

func TestALookNeedsNoMoreMemoryThanAnEnvironmentMayHave(t *testing.T) {
	program := compile(t, bigEnvironment)
	b, _ := newContainer(t, process.Options{})
	var out testenv.Output
	if _, err := b.Start(t.Context(), "c", executor.ProcessSpec{Path: program, Args: []string{"512"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if waitFor(t, &out) != "ok" {
		testenv.Missing(t, "a kernel in which processes say where their environment is", "CONFIG_CHECKPOINT_RESTORE")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := b.Delete(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 128<<20 {
		t.Errorf("it took %d MiB of memory", n>>20)
	}
}
