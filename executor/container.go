package executor

import (
	"maps"
	"net/netip"
	"time"
)

// DefaultReservationExpiry is how long a reservation waits for its work.
const DefaultReservationExpiry = 60 * time.Second

// A Container is one container of a cell at one moment. It is a value: the
// methods that change its state return the next Container and leave the
// receiver as it was. Nothing changes what a Container points to, so goroutines
// may share it. The methods convert the times that they take to UTC.
//
//	Reserve → Initialize → Create → Run → Complete
//	               └──────────┴───────────────┘
//
// An illegal change is a [*TransitionError]. A container may be deleted in any
// state.
type Container struct {
	// GUID names the container: an instance guid or a task guid.
	GUID string `json:"guid"`
	// Tags say what the container is for; see TagLifecycle and its siblings.
	Tags map[string]string `json:"tags,omitempty"`
	// Resources are taken from the cell until the container is deleted.
	Resources Resources `json:"resources"`
	State     State     `json:"state"`
	// RunInfo is nil while RESERVED, and for ever if the reservation expired. The
	// call Containers of a cell leaves it out.
	RunInfo *RunInfo `json:"run_info,omitempty"`
	// Routable says whether a RUNNING container should receive traffic; it is
	// false in other states.
	Routable bool `json:"routable,omitempty"`
	// AllocatedAt is when the container was reserved.
	AllocatedAt time.Time `json:"allocated_at"`
	// Since is when State last changed.
	Since time.Time `json:"since"`
	// Addresses are empty before CREATED.
	Addresses
	// RunResult is set only when COMPLETED. Its zero value is success.
	RunResult RunResult `json:"run_result,omitzero"`
}

// Addresses say how to reach a container.
type Addresses struct {
	// ExternalIP is the cell's IP address as seen from outside.
	ExternalIP string `json:"external_ip,omitempty"`
	// InternalIP is the container's own IP address, if it has one.
	InternalIP string `json:"internal_ip,omitempty"`
	// Ports map ports of the container to ports of ExternalIP.
	Ports []PortMapping `json:"ports,omitempty"`
}

// A PortMapping makes ContainerPort reachable as HostPort.
type PortMapping struct {
	ContainerPort uint16 `json:"container_port"`
	HostPort      uint16 `json:"host_port"`
}

// Validate checks that the addresses are IP addresses and no port is 0.
func (a Addresses) Validate(v *Validator) {
	validateIP(v, "external_ip", a.ExternalIP)
	validateIP(v, "internal_ip", a.InternalIP)
	if !v.listLength("ports", len(a.Ports)) {
		return
	}
	for i, p := range a.Ports {
		v := v.At("ports", i)
		v.port("container_port", p.ContainerPort)
		v.port("host_port", p.HostPort)
	}
}

func validateIP(v *Validator, field, text string) {
	_, err := netip.ParseAddr(text)
	v.Check(text == "" || err == nil, field, text, "an IP address")
}

// Reserve returns a RESERVED container. The container keeps tags, so the caller
// must not change them afterwards.
func Reserve(guid string, size Resources, tags map[string]string, now time.Time) (Container, error) {
	now = now.UTC()
	next := Container{GUID: guid, Tags: tags, Resources: size, State: Reserved, AllocatedAt: now, Since: now}
	return Container{}.orValid(next)
}

// Initialize gives a reservation its work (RESERVED → INITIALIZING). Tags are
// added to those of the reservation and replace tags of the same name.
func (c Container) Initialize(info RunInfo, tags map[string]string, now time.Time) (Container, error) {
	next, err := c.to(Initializing, now)
	if err != nil {
		return c, err
	}
	next.RunInfo = &info
	if len(tags) > 0 {
		next.Tags = make(map[string]string, len(c.Tags)+len(tags))
		maps.Copy(next.Tags, c.Tags)
		maps.Copy(next.Tags, tags)
	}
	return c.orValid(next)
}

// Create records that the container was made (INITIALIZING → CREATED) and where
// it can be reached.
func (c Container) Create(a Addresses, now time.Time) (Container, error) {
	next, err := c.to(Created, now)
	if err != nil {
		return c, err
	}
	next.Addresses = a
	return c.orValid(next)
}

// Run records that the container is healthy (CREATED → RUNNING). It is routable
// at once unless it has readiness checks; then [Container.SetRoutable] makes it
// so.
func (c Container) Run(now time.Time) (Container, error) {
	next, err := c.to(Running, now)
	if err != nil {
		return c, err
	}
	next.Routable = next.RunInfo != nil && !next.RunInfo.HasReadinessChecks()
	return c.orValid(next)
}

// SetRoutable records whether a RUNNING container is ready for traffic. The
// state does not change, so Since stays. SetRoutable reports whether anything
// changed; a container in another state is returned unchanged.
func (c Container) SetRoutable(routable bool) (Container, bool) {
	if c.State != Running || c.Routable == routable {
		return c, false
	}
	next := c
	next.Routable = routable
	return next, true
}

// Complete ends a container that is INITIALIZING, CREATED or RUNNING. A
// result that contradicts itself is a *ValidationError.
func (c Container) Complete(result RunResult, now time.Time) (Container, error) {
	next, err := c.to(Completed, now)
	if err != nil {
		return c, err
	}
	next.Routable = false
	next.RunResult = result
	return c.orValid(next)
}

// Expire ends a reservation that has waited for its work for the given time (0
// means DefaultReservationExpiry): it is COMPLETED with the result [Expired].
// The specification allows RESERVED to become only INITIALIZING, so this is two
// transitions in one step, RESERVED → INITIALIZING → COMPLETED; the state
// between them is never visible. Expire reports whether it did so. A container
// in another state, or whose time has not come, is returned unchanged.
func (c Container) Expire(after time.Duration, now time.Time) (Container, bool) {
	if after <= 0 {
		after = DefaultReservationExpiry
	}
	if c.State != Reserved || now.Before(c.AllocatedAt.Add(after)) {
		return c, false
	}
	next := c
	next.State = Completed
	next.Since = now.UTC()
	next.RunResult = Expired()
	return next, true
}

// Validate checks every field, and that fields which belong to some states are
// set only in those.
func (c Container) Validate(v *Validator) {
	v.GUID("guid", c.GUID)
	v.listLength("tags", len(c.Tags))
	c.Resources.Validate(v.In("resources"))
	v.Check(c.State.known(), "state", c.State, "a known state")
	v.Check((c.RunInfo == nil) == (c.State == Reserved || c.RunResult.Expired), "run_info", "",
		"none in a reservation, used or expired, and one in any other container")
	if c.RunInfo != nil {
		c.RunInfo.Validate(v.In("run_info"))
	}
	v.Check(!c.Routable || c.State == Running, "routable", c.Routable, "false unless RUNNING")
	v.Check(!c.AllocatedAt.IsZero(), "allocated_at", c.AllocatedAt, "a time")
	v.Check(!c.Since.IsZero(), "since", c.Since, "a time")
	made := c.State != Reserved && c.State != Initializing
	v.Check(made || c.ExternalIP == "" && c.InternalIP == "" && len(c.Ports) == 0, "external_ip", c.ExternalIP,
		"no addresses before CREATED")
	c.Addresses.Validate(v)
	v.Check(c.State == Completed || c.RunResult == RunResult{}, "run_result", "", "a result only when COMPLETED")
	c.RunResult.Validate(v.In("run_result"))
}

// to is c in another state, if that is legal.
func (c Container) to(state State, now time.Time) (Container, error) {
	if !CanTransition(c.State, state) {
		return c, &TransitionError{GUID: c.GUID, Transition: Transition{c.State, state}}
	}
	c.State = state
	c.Since = now.UTC()
	return c, nil
}

// orValid is next if it is valid, and otherwise c and why.
func (c Container) orValid(next Container) (Container, error) {
	var v Validator
	next.Validate(&v)
	if err := v.Err(); err != nil {
		return c, err
	}
	return next, nil
}
