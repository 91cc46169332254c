package manager

import (
	"cmp"
	"encoding/json"
	"net"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// environment is the variables of a process, in the order in which later ones
// win: what the container offers, RunInfo.Env, the process's own, and what
// says who and where it is. PORT is only offered, since consumers set it too;
// but where ports are those of the host no other value can work, so there it
// wins. certificates says whether the cell has any, and credentials is the
// directory with those of the container, if it has any.
func environment(c executor.Container, endpoint executor.Endpoint, certificates bool, credentials string, own []executor.EnvVar) []executor.EnvVar {
	var env []executor.EnvVar
	add := func(name, value string) { env = append(env, executor.EnvVar{Name: name, Value: value}) }
	port := ""
	if len(endpoint.Ports) > 0 {
		port = text(endpoint.Ports[0].ContainerPort)
		if endpoint.SharesHostNetwork {
			port = text(endpoint.Ports[0].HostPort)
		}
		add("PORT", port)
	}
	env = append(env, c.RunInfo.Env...)
	env = append(env, own...)
	if port != "" && endpoint.SharesHostNetwork {
		add("PORT", port)
	}

	guid := instanceGUID(c)
	add("INSTANCE_GUID", guid)
	add("CF_INSTANCE_GUID", guid)
	if index, ok := c.Tags[executor.TagProcessIndex]; ok {
		add("INSTANCE_INDEX", index)
		add("CF_INSTANCE_INDEX", index)
	}
	add("CF_INSTANCE_IP", endpoint.ExternalIP)
	add("CF_INSTANCE_INTERNAL_IP", cmp.Or(endpoint.InternalIP, endpoint.ExternalIP))
	type mapping struct {
		External uint16 `json:"external"`
		Internal uint16 `json:"internal"`
	}
	ports := make([]mapping, 0, len(endpoint.Ports))
	for i, p := range endpoint.Ports {
		ports = append(ports, mapping{p.HostPort, p.ContainerPort})
		if i == 0 {
			add("CF_INSTANCE_PORT", text(p.HostPort))
			add("CF_INSTANCE_ADDR", net.JoinHostPort(endpoint.ExternalIP, text(p.HostPort)))
		}
	}
	list, err := json.Marshal(ports)
	if err == nil { // numbers always encode
		add("CF_INSTANCE_PORTS", string(list))
	}
	if path := c.RunInfo.TrustedSystemCertificatesPath; path != "" && certificates {
		add("CF_SYSTEM_CERT_PATH", path)
	}
	if credentials != "" {
		add("CF_INSTANCE_CERT", credentials+"/"+certificateFile)
		add("CF_INSTANCE_KEY", credentials+"/"+keyFile)
	}
	return env
}

// instanceGUID is the guid of the container's instance or, if it is not one, its
// own.
func instanceGUID(c executor.Container) string {
	return cmp.Or(c.Tags[executor.TagInstanceGUID], c.GUID)
}

func text(port uint16) string { return strconv.Itoa(int(port)) }
