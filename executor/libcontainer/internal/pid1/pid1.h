// What the daemon and the first process of a container say to each other, over
// a SEQPACKET socket. Numbers are in the machine's own order.

#include <stdint.h>

// A message in both directions.
struct pid1_message {
	uint32_t op;
	uint32_t id;   // of a start, chosen by the daemon
	int32_t pid;   // within the container
	int32_t value;
};

enum {
	// To the first process.
	PID1_START = 1, // id, value: bytes of the request; with PID1_FDS descriptors
	PID1_SIGNAL,    // pid as for kill(2), value: the signal
	// From it.
	PID1_READY,   // it runs
	PID1_STARTED, // id, pid; if pid is 0, value is an errno
	PID1_EXITED,  // pid, value: a wait status
};

// The descriptors of a start, in this order.
enum { PID1_FD_REQUEST, PID1_FD_FAILURE, PID1_FD_STDIN, PID1_FD_STDOUT, PID1_FD_STDERR, PID1_FDS };

// PID1_SOCKET_FD is where the daemon has put its socket, and PID1_PROGRAM_FD
// where the program itself is while it starts.
enum { PID1_SOCKET_FD = 3, PID1_PROGRAM_FD };

// A request is mapped by the child. Offsets are from its beginning; lists are
// of offsets and end with 0.
struct pid1_request {
	uint64_t uid, gid, group_count, groups; // groups: uint32_t each
	uint64_t limit_count, limits;           // struct pid1_limit each
	uint64_t keep_capabilities;
	uint64_t terminal;                      // stdin is one, which the child is to control
	uint64_t filter_count, filter;          // struct sock_filter each; none if 0
	uint64_t dir;
	uint64_t argv, envp, paths; // lists; paths are tried in order
};

struct pid1_limit {
	uint64_t resource, soft, hard;
};

// What a child writes before it gives up. One that becomes its program writes
// nothing: the descriptor is closed by execve.
struct pid1_failure {
	uint32_t stage, error;
};

enum { PID1_STAGE_REQUEST = 1, PID1_STAGE_LIMIT, PID1_STAGE_USER, PID1_STAGE_DIR, PID1_STAGE_FILTER, PID1_STAGE_EXEC };
