package executor

// The tags by which a cell knows what a container is for. The values of
// Container.Tags are text; consumers may add tags of their own.
const (
	// TagLifecycle is LifecycleLRP, LifecycleTask or LifecycleSelfTest. A
	// container without one of these is not the cell's work.
	TagLifecycle = "lifecycle"
	TagDomain    = "domain"
	// TagTaskGUID and TagTaskAttempt name the task, and the try to run it.
	TagTaskGUID    = "task-guid"
	TagTaskAttempt = "task-attempt"
	// TagResultFile is the path in the container of the file that holds a
	// task's result.
	TagResultFile = "result-file"

	// TagProcessGUID, TagDefinitionID, TagProcessIndex (decimal) and
	// TagInstanceGUID name the instance of an LRP.
	TagProcessGUID  = "process-guid"
	TagDefinitionID = "definition-id"
	TagProcessIndex = "process-index"
	TagInstanceGUID = "instance-guid"

	// TagReason is why the work was placed on its cell, for people.
	TagReason = "reason"

	// TagPlacementTags and TagVolumeDrivers are lists in JSON: what the
	// container asked of its cell.
	TagPlacementTags = "placement-tags"
	TagVolumeDrivers = "volume-drivers"
	// TagMetricTags are the metric tags of the process or task in JSON, as they
	// were when the container got its work: see ResolveMetricTags.
	TagMetricTags = "metric-tags"
)

// The values of TagLifecycle.
const (
	LifecycleLRP  = "lrp"
	LifecycleTask = "task"
	// LifecycleSelfTest is a container by which a cell finds out whether it can
	// make containers.
	LifecycleSelfTest = "self-test"
)
