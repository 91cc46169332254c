// What the daemon and the first process of a container say to each other, over
// a SEQPACKET socket. Numbers are in the machine's own order.

#include <stdint.h>

// A message in both directions.
struct pid1_message {
	uint32_t op;
	int32_t pid; // within the container
	int32_t value;
};

enum {
	// To the first process.
	PID1_START = 1, // value: bytes of the request; with PID1_FDS descriptors
	PID1_SIGNAL,    // pid as for kill(2), value: the signal
	// From it.
	PID1_READY,  // it runs
	PID1_EXITED, // pid, value: a wait status
};

// The descriptors of a start, in this order: if only some arrive, there is one to
// say so.
enum { PID1_FD_ANSWER, PID1_FD_REQUEST, PID1_FD_STDIN, PID1_FD_STDOUT, PID1_FD_STDERR, PID1_FDS };

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

// An answer to a start. The first process writes one, and the child another if it
// gives up, perhaps before. execve closes the child's descriptor: the end says
// that there is nothing more to wait for.
struct pid1_answer {
	uint32_t stage;
	int32_t value; // PID1_FORKED: the child's pid within the container; else an errno
};

enum { PID1_FORKED, PID1_STAGE_FORK, PID1_STAGE_REQUEST, PID1_STAGE_LIMIT, PID1_STAGE_USER, PID1_STAGE_DIR, PID1_STAGE_FILTER, PID1_STAGE_EXEC };
