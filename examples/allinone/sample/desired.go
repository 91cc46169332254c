package sample

import (
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// What the sample is called.
const (
	ProcessGUID = "sample"
	Domain      = "sample"
	TaskGUID    = "primes"
)

// ResultFile is where the task leaves its result.
const ResultFile = "/tmp/result"

const (
	dir  = "/sample" // where Volume is in a container
	port = 8080
)

// LRP is the web app.
func LRP(instances int) lrp.DesiredLRP {
	return lrp.DesiredLRP{
		ProcessGUID: ProcessGUID, Domain: Domain, Settings: lrp.Settings{Instances: instances},
		Definition: lrp.Definition{
			Resources: executor.Resources{MemoryMB: 64},
			RunInfo: executor.RunInfo{
				RootFS: "host:", Ports: []uint16{port}, VolumeMounts: []executor.VolumeMount{mount()},
				Action: run(),
				Check:  &executor.CheckDefinition{Checks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: port, Path: "/health"}}}},
				// The first crash of an instance that cannot start comes early.
				StartTimeoutMs: 30_000,
			},
		},
	}
}

// Task counts the primes below ten million.
func Task() task.Desire {
	return task.Desire{
		GUID: TaskGUID, Domain: Domain,
		Definition: task.Definition{
			Resources:  executor.Resources{MemoryMB: 64},
			RunInfo:    executor.RunInfo{RootFS: "host:", VolumeMounts: []executor.VolumeMount{mount()}, Action: run("count", "10000000")},
			ResultFile: ResultFile,
		},
	}
}

func run(args ...string) executor.Action {
	return executor.Action{Run: &executor.RunAction{Path: dir + "/" + binary, Args: append([]string{Command}, args...), User: "nobody"}}
}

func mount() executor.VolumeMount {
	return executor.VolumeMount{
		Driver: Driver, ContainerDir: dir, Mode: executor.MountReadOnly, Shared: &executor.SharedDevice{VolumeID: "binary"},
	}
}
