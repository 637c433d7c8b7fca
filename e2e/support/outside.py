# SPDX-License-Identifier: Apache-2.0
"""The system as processes of BUILD_DIR instead of pods: for sanitizer builds, and for work on them.
SANDBOX_E2E_OUTSIDE=1 chooses it."""

import pathlib

from .daemons import Controller, Gateway, account_kubeconfig
from .system import CONTROLLER, GATEWAY, NAMESPACE, ROOT, System, load_images


class OutsideSystem(System):
    def __init__(self, kube):
        super().__init__(kube)
        self.folder = ROOT / "build/e2e/outside"
        self.running = {CONTROLLER: [], GATEWAY: []}

    def install(self):
        self.state.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        for log in self.folder.glob("*.log"):
            log.unlink()
        load_images()
        self.shell('install_overlays "$PWD"; sed -i "s/^  replicas: .*/  replicas: 0/" $STATE/system.yaml; install_system')
        self.scale(CONTROLLER, 1)
        self.scale(GATEWAY, 2)

    def stop(self):
        for app in self.running:
            self.scale(app, 0)

    def start(self, app):
        config = account_kubeconfig(self.kube, pathlib.Path(self.folder, f"{app}.kubeconfig"), NAMESPACE, app)
        return (Controller if app == CONTROLLER else Gateway)(config, self.folder)

    def scale(self, app, replicas):
        running = self.running[app]
        while len(running) > replicas:
            running.pop().stop()
        while len(running) < replicas:
            running.append(self.start(app))

    def kill_all(self, app):
        for daemon in self.running[app]:
            daemon.kill()
            daemon.start()

    def address(self):
        return self.running[GATEWAY][0].url

    def addresses(self):
        return {str(d.port): d.url for d in self.running[GATEWAY]}

    def restarts(self):
        return {f"{app}-{d.obs_port}": d.starts - 1 + (not d.alive()) for app, all_of in self.running.items()
                for d in all_of}

    def logs(self, app, lines=200):
        return "\n".join("\n".join(d.log().splitlines()[-lines:]) for d in self.running[app])
