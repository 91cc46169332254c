package executor

// The tags by which a cell knows what a container is for. The values of
// Container.Tags are text; consumers may add tags of their own.
const (
	// TagLifecycle is LifecycleLRP or LifecycleTask. A container with
	// neither belongs to neither.
	TagLifecycle = "lifecycle"
	TagDomain    = "domain"
	// TagResultFile is the path in the container of the file that holds a
	// task's result.
	TagResultFile = "result-file"

	// TagProcessGUID, TagDefinitionID, TagProcessIndex (decimal) and
	// TagInstanceGUID name the instance of an LRP.
	TagProcessGUID  = "process-guid"
	TagDefinitionID = "definition-id"
	TagProcessIndex = "process-index"
	TagInstanceGUID = "instance-guid"

	// TagPlacementTags and TagVolumeDrivers are lists in JSON: what the
	// container asked of its cell.
	TagPlacementTags = "placement-tags"
	TagVolumeDrivers = "volume-drivers"
)

// The values of TagLifecycle.
const (
	LifecycleLRP  = "lrp"
	LifecycleTask = "task"
)
