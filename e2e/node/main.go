// SPDX-License-Identifier: Apache-2.0

// Command k8s-node is every program of a one-node Kubernetes in one binary. The program is chosen by
// the name the binary is called by (a symbolic link per program), or else by the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	_ "time/tzdata" // CronJobs name time zones

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// daemon wraps a Kubernetes daemon's command into a program that returns its exit status.
func daemon(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func runKubectl() int {
	// The verbosity is wanted before cobra parses the flags: plug-in look-up and kuberc are logged too.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints it as kubectl does and exits
	}
	return 0
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          daemon(func() *cobra.Command { return apiserver.NewAPIServerCommand() }),
	"kube-controller-manager": daemon(func() *cobra.Command { return controllermanager.NewControllerManagerCommand() }),
	"kube-proxy":              daemon(func() *cobra.Command { return proxy.NewProxyCommand() }),
	"kube-scheduler":          daemon(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 runKubectl,
	"kubelet":                 daemon(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
}

func usage() int {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: %s PROGRAM [ARGUMENT...]\nprograms: %s\n",
		filepath.Base(os.Args[0]), strings.Join(names, " "))
	return 2
}

func main() {
	name := filepath.Base(os.Args[0])
	run, found := programs[name]
	if !found && len(os.Args) > 1 {
		name = os.Args[1]
		if run, found = programs[name]; found {
			os.Args = append([]string{name}, os.Args[2:]...)
		}
	}
	if !found {
		os.Exit(usage())
	}
	os.Exit(run())
}
