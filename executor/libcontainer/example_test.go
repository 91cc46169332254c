//go:build linux && cgo && (amd64 || arm64)

package libcontainer_test

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer"
)

// It takes root, so it is compiled and not run.
func ExampleNew() {
	b, err := libcontainer.New(libcontainer.Options{Dir: "/var/lib/diego"})
	if err != nil {
		fmt.Println(err) // why this host can run no containers
		return
	}
	defer b.Close()
	ctx := context.Background()
	endpoint, err := b.Create(ctx, executor.ContainerSpec{
		GUID: "web", RootFS: "host:", Ports: []uint16{8080}, Resources: executor.Resources{MemoryMB: 64},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Delete(ctx, "web")
	fmt.Println("port 8080 of the container is", endpoint.Ports[0].HostPort)
}
