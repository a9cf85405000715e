// Command kube is etcd, the Kubernetes control plane and kubectl in one binary: the first argument says which of them to be.
//
// One binary instead of five because they share nearly all of their code: a third of the disk, and one link instead of five.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var roles = map[string]func() *cobra.Command{
	"apiserver":   apiserver.NewAPIServerCommand,
	"controllers": controllers.NewControllerManagerCommand,
	"scheduler":   func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":     cmd.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kube etcd|apiserver|controllers|scheduler|kubectl [flags]")
		os.Exit(64)
	}
	role := os.Args[1]
	// Each role parses os.Args as if it had been started under its own name.
	os.Args = os.Args[1:]
	if role == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := roles[role]
	if !known {
		fmt.Fprintln(os.Stderr, "kube: no such role:", role)
		os.Exit(64)
	}
	os.Exit(cli.Run(command()))
}
