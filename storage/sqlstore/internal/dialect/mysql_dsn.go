package dialect

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// ParseMySQL parses the part of a data source name after "mysql:". oneNode is
// true if it has one_node=true.
func ParseMySQL(dsn string) (config *mysql.Config, oneNode bool, err error) {
	if strings.HasPrefix(dsn, "//") {
		u, err := url.Parse("mysql:" + dsn)
		if err != nil {
			return nil, false, err
		}
		host := u.Host
		if u.Port() == "" {
			host += ":3306"
		}
		password, _ := u.User.Password()
		dsn = u.User.Username() + ":" + password + "@tcp(" + host + ")" + u.EscapedPath()
		if u.RawQuery != "" {
			dsn += "?" + u.RawQuery
		}
	}
	config, err = mysql.ParseDSN(dsn)
	if err != nil {
		return nil, false, err
	}
	if value, given := config.Params[oneNodeParameter]; given {
		if oneNode, err = strconv.ParseBool(value); err != nil {
			return nil, false, fmt.Errorf("%s is %q; want true or false", oneNodeParameter, value)
		}
		delete(config.Params, oneNodeParameter)
	}
	// A text may have several statements, and the driver fills in their
	// arguments.
	config.MultiStatements = true
	// All errors are returned, so the driver need not print them.
	config.Logger = new(mysql.NopLogger)
	config.InterpolateParams = true
	config.MaxAllowedPacket = 0 // what the server says
	return config, oneNode, nil
}
