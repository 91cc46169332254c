//go:build linux && cgo && (amd64 || arm64)

// The first process of every container.
//
// It starts processes when the daemon asks for it, reaps whatever ends, and
// ends itself, and with it the whole container, when the daemon is gone. It
// is made of system calls only: no library, no data, no stack protector. Its
// code lies in a section of its own, which elf.go wraps into a program; so it
// runs whatever the root file system holds, and takes a few pages of memory.
//
// It keeps only the capabilities that starting and signalling take, and gives
// them to none of its children.

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pid1.h"

#define INLINE static inline __attribute__((always_inline))

// call is a system call of five arguments; a sixth would be 0.
#if defined(__x86_64__)
__asm__(".pushsection diego_pid1,\"ax\",@progbits\n"
        ".globl diego_pid1_entry\n"
        ".hidden diego_pid1_entry\n"
        "diego_pid1_entry:\n"
        "\txorl %ebp, %ebp\n"
        "\tandq $-16, %rsp\n"
        "\tcall diego_pid1_main\n"
        "\thlt\n"
        ".popsection\n");

INLINE long call(long n, long a, long b, long c, long d, long e) {
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
__asm__(".pushsection diego_pid1,\"ax\",@progbits\n"
        ".balign 4\n"
        ".globl diego_pid1_entry\n"
        ".hidden diego_pid1_entry\n"
        "diego_pid1_entry:\n"
        "\tmov x29, #0\n"
        "\tbl diego_pid1_main\n"
        "\tbrk #0\n"
        ".popsection\n");

INLINE long call(long n, long a, long b, long c, long d, long e) {
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = 0;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#else
#error "no system calls are known for this architecture: add them above"
#endif

#define SYS(n, a, b, c, d) call(SYS_##n, (long)(a), (long)(b), (long)(c), (long)(d), 0)

enum { sock = PID1_SOCKET_FD };

// Every signal is one bit of the kernel's 64-bit set.
#define BIT(s) (1ull << ((s)-1))

INLINE void die(int status) {
	for (;;) SYS(exit_group, status, 0, 0, 0);
}

INLINE void tell(uint32_t op, int32_t pid, int32_t value) {
	struct pid1_message m;
	m.op = op;
	m.pid = pid;
	m.value = value;
	if (call(SYS_sendto, sock, (long)&m, sizeof m, MSG_NOSIGNAL, 0) < 0) die(1);
}

INLINE void answer(int fd, uint32_t stage, long value) {
	struct pid1_answer a;
	a.stage = stage;
	a.value = (int32_t)value;
	SYS(write, fd, &a, sizeof a, 0);
}

// fail ends a child that could not become its program.
INLINE void fail(int fd, uint32_t stage, long err) {
	answer(fd, stage, -err);
	die(127);
}

// relocate turns a list of offsets into one of pointers.
INLINE char **relocate(char *base, uint64_t offset) {
	uint64_t *list = (uint64_t *)(base + offset);
	for (uint64_t *p = list; *p != 0; p++) {
		*p += (uint64_t)base;
		__asm__ volatile("" ::: "memory");
	}
	return (char **)list;
}

// become turns a child into the program that was asked for.
INLINE void become(const int *fds, uint64_t size) {
	const int failure = fds[PID1_FD_ANSWER];
	long r, worst = -ENOENT;
	char *base = (char *)call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[PID1_FD_REQUEST]);
	if ((unsigned long)base >= -4095ul) fail(failure, PID1_STAGE_REQUEST, (long)base);
	struct pid1_request *q = (struct pid1_request *)base;

	uint64_t none = 0;
	SYS(rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none);
	SYS(setsid, 0, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		if ((r = SYS(dup3, fds[PID1_FD_STDIN + i], i, 0, 0)) < 0) fail(failure, PID1_STAGE_REQUEST, r);
	if (q->terminal && (r = SYS(ioctl, 0, TIOCSCTTY, 0, 0)) < 0) fail(failure, PID1_STAGE_REQUEST, r);
	SYS(umask, 022, 0, 0, 0);
	struct pid1_limit *limits = (struct pid1_limit *)(base + q->limits);
	for (uint64_t i = 0; i < q->limit_count; i++)
		if ((r = SYS(prlimit64, 0, limits[i].resource, &limits[i].soft, 0)) < 0) fail(failure, PID1_STAGE_LIMIT, r);
	if (!q->keep_capabilities)
		for (int c = 0; SYS(prctl, PR_CAPBSET_READ, c, 0, 0) >= 0; c++)
			if ((r = SYS(prctl, PR_CAPBSET_DROP, c, 0, 0)) < 0) fail(failure, PID1_STAGE_USER, r);
	if ((r = SYS(setgroups, q->group_count, base + q->groups, 0, 0)) < 0) fail(failure, PID1_STAGE_USER, r);
	if ((r = SYS(setresgid, q->gid, q->gid, q->gid, 0)) < 0) fail(failure, PID1_STAGE_USER, r);
	if ((r = SYS(setresuid, q->uid, q->uid, q->uid, 0)) < 0) fail(failure, PID1_STAGE_USER, r);
	if (!q->keep_capabilities) {
		struct __user_cap_header_struct header;
		struct __user_cap_data_struct data[2];
		header.version = _LINUX_CAPABILITY_VERSION_3;
		header.pid = 0;
		for (int i = 0; i < 2; i++) {
			data[i].effective = data[i].permitted = data[i].inheritable = 0;
			__asm__ volatile("" ::: "memory");
		}
		if ((r = SYS(capset, &header, data, 0, 0)) < 0) fail(failure, PID1_STAGE_USER, r);
	}
	if ((r = SYS(chdir, base + q->dir, 0, 0, 0)) < 0) fail(failure, PID1_STAGE_DIR, r);

	char **argv = relocate(base, q->argv), **envp = relocate(base, q->envp);
	if (q->filter_count) {
		struct sock_fprog program;
		program.len = (unsigned short)q->filter_count;
		program.filter = (struct sock_filter *)(base + q->filter);
		if ((r = SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &program, 0)) < 0) fail(failure, PID1_STAGE_FILTER, r);
	}
	for (char **path = relocate(base, q->paths); *path; path++) {
		r = SYS(execve, *path, argv, envp, 0);
		if (r != -ENOENT && r != -ENOTDIR) worst = r;
		if (r != -ENOENT && r != -ENOTDIR && r != -EACCES) break;
	}
	fail(failure, PID1_STAGE_EXEC, worst);
}

// reap reports processes that have ended, also those that lost their parents and
// came to us, and returns whether there may be more. Those that end without a pause
// must not keep us from serving.
INLINE int reap(void) {
	for (int i = 0; i < 64; i++) {
		int status = 0;
		long pid = SYS(wait4, -1, &status, WNOHANG | __WALL, 0);
		if (pid <= 0) return 0;
		tell(PID1_EXITED, (int32_t)pid, status);
	}
	return 1;
}

// serve carries out one message of the daemon.
INLINE void serve(void) {
	struct pid1_message m;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(PID1_FDS * sizeof(int))];
	} control;
	struct iovec iov;
	struct msghdr h;
	iov.iov_base = &m;
	iov.iov_len = sizeof m;
	h.msg_name = 0;
	h.msg_namelen = 0;
	h.msg_iov = &iov;
	h.msg_iovlen = 1;
	h.msg_control = &control;
	h.msg_controllen = sizeof control;
	h.msg_flags = 0;
	long n = SYS(recvmsg, sock, &h, MSG_CMSG_CLOEXEC, 0);
	if (n == -EINTR) return;
	if (n != sizeof m) die(0); // the daemon is gone

	if (m.op == PID1_SIGNAL) {
		SYS(kill, m.pid, m.value, 0, 0);
		return;
	}
	const int *fds = (const int *)CMSG_DATA(&control.header);
	if (h.msg_controllen < CMSG_LEN(sizeof(int))) return; // none has arrived: its pipe ends
	const long count = (long)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	long pid = -EMFILE;
	if (count >= PID1_FDS) pid = call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) become(fds, (uint64_t)m.value);
	answer(fds[PID1_FD_ANSWER], pid > 0 ? PID1_FORKED : PID1_STAGE_FORK, pid > 0 ? pid : -pid);
	for (long i = 0; i < count; i++) {
		SYS(close, fds[i], 0, 0, 0);
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((section("diego_pid1"), used, noreturn, visibility("hidden"))) void diego_pid1_main(void) {
	uint64_t mask = ~0ull, child = BIT(SIGCHLD);
	SYS(rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof mask);
	SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0);
	SYS(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0); // for a daemon that is killed and cannot close its socket
	SYS(close, PID1_PROGRAM_FD, 0, 0, 0);
	SYS(fcntl, sock, F_SETFD, FD_CLOEXEC, 0);
	long ended = SYS(signalfd4, -1, &child, sizeof child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ended < 0) die(1);
	tell(PID1_READY, 0, 0);
	for (int more = 0;;) {
		long at_once[2]; // a struct timespec
		at_once[0] = at_once[1] = 0;
		struct pollfd polled[2];
		polled[0].fd = (int)ended;
		polled[1].fd = sock;
		polled[0].events = polled[1].events = POLLIN;
		polled[0].revents = polled[1].revents = 0;
		long r = call(SYS_ppoll, (long)polled, 2, more ? (long)at_once : 0, 0, 8);
		if (r == -EINTR) continue;
		if (r < 0) die(0); // such as by a limit that root in the container has set: we would not see the daemon go
		if (polled[0].revents) {
			char info[128]; // one struct signalfd_siginfo
			SYS(read, ended, info, sizeof info, 0);
			more = 1;
		}
		if (more) more = reap();
		if (polled[1].revents) serve();
	}
}

// What elf.go takes the program from. The linker makes the first two.
extern char __start_diego_pid1[], __stop_diego_pid1[], diego_pid1_entry[];

const char *diego_pid1_code(void) { return __start_diego_pid1; }
uint64_t diego_pid1_size(void) { return (uint64_t)(__stop_diego_pid1 - __start_diego_pid1); }
uint64_t diego_pid1_start(void) { return (uint64_t)(diego_pid1_entry - __start_diego_pid1); }
