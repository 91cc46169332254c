package daemon

import (
	"net/netip"

	"github.com/diegosdk/diego/internal/reach"
)

// Callbacks are the settings of what callbacks may reach, for embedding.
type Callbacks struct {
	CallbackAllow []string `name:"callback_allow" option:"diego.Options.CallbackAllow,by hand" help:"networks or addresses that callbacks of tasks may reach though they are denied, by callback_deny or always: loopback, link-local and unspecified addresses, those of containers, metadata services and multicast"`
	CallbackDeny  []string `name:"callback_deny" option:"diego.Options.CallbackDeny,by hand" help:"networks or addresses that callbacks of tasks may not reach"`
}

// CheckCallbacks is for the Check method of settings that embed Callbacks.
func (c *Callbacks) CheckCallbacks(report func(name, want string)) {
	checkNetworks(report, "callback_allow", c.CallbackAllow)
	checkNetworks(report, "callback_deny", c.CallbackDeny)
}

// Networks are the networks in the settings, which Check has accepted.
func (c *Callbacks) Networks() (allow, deny []netip.Prefix) {
	return networks(c.CallbackAllow), networks(c.CallbackDeny)
}

// checkNetworks reports each text that is not a network. name is the name of the
// setting.
func checkNetworks(report func(name, want string), name string, list []string) {
	if _, err := reach.Parse(list); err != nil {
		report(name, "want networks such as 10.0.0.0/8, or addresses: "+err.Error())
	}
}

func networks(list []string) []netip.Prefix {
	parsed, _ := reach.Parse(list) // checkNetworks has found no error
	return parsed
}
