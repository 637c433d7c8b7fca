# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Installs the project on a cluster with kustomize and remembers what it made, so that the removal takes
# away that and nothing else. To be sourced; needs common.sh. The caller sets:
#
#   KUBECTL      array: kubectl with its options for the cluster
#   STATE        folder for the rendered manifests and the list of what was made
#   IMAGE_PREFIX "REGISTRY/PATH" before the image names, or empty for images loaded into the node
#   IMAGE_TAG    tag of the images
#   IMAGE_HASH   text that changes when an image does: a change rolls the Deployments

# shellcheck disable=SC2034 # for the scripts that source this
install_images=(sandbox-controller sandbox-gateway sandbox-python)

# Writes two small overlays, system and examples, below build/demo (kustomize wants relative paths).
install_overlays() {
    local overlay=$1/build/demo/overlay name
    mkdir -p "$overlay/system" "$overlay/examples"
    images() {
        printf 'images:\n'
        for name in "$@"; do
            printf '  - name: k8s-agent-sandbox/%s\n    newName: %s\n    newTag: "%s"\n' \
                "$name" "${IMAGE_PREFIX:-k8s-agent-sandbox}/$name" "$IMAGE_TAG"
        done
    }
    {
        printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - ../../../../manifests/default\n'
        images sandbox-controller sandbox-gateway
        cat <<YAML
patches:
  - target: {kind: Deployment}
    patch: |-
      apiVersion: apps/v1
      kind: Deployment
      metadata:
        name: any
      spec:
        template:
          metadata:
            annotations:
              k8s-agent-sandbox-mcp/image-hash: "$IMAGE_HASH"
YAML
    } >"$overlay/system/kustomization.yaml"
    {
        printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - ../../../../manifests/examples\n'
        printf 'configurations:\n  - ../../../../manifests/examples/images.yaml\n'
        images sandbox-python
    } >"$overlay/examples/kustomization.yaml"
    "${KUBECTL[@]}" kustomize "$overlay/system" >"$STATE/system.yaml"
    "${KUBECTL[@]}" kustomize --load-restrictor LoadRestrictionsNone "$overlay/examples" >"$STATE/examples.yaml"
}

# install_record MANIFEST MADE: adds to MADE (a List of names) what of MANIFEST does not exist yet.
install_record() {
    local manifest=$1 made=$2
    "${KUBECTL[@]}" get -f "$manifest" --ignore-not-found -o json >"$STATE/existing.json" 2>"$STATE/existing.err" || {
        # The kinds of the examples are unknown before the CRDs are there: then none of them exists.
        grep -q 'no matches for kind' "$STATE/existing.err" || { cat "$STATE/existing.err" >&2; return 1; }
        : >"$STATE/existing.json"
    }
    "${KUBECTL[@]}" create -f "$manifest" --dry-run=client --validate=false -o json >"$STATE/wanted.json"
    python3 - "$STATE" "$made" <<'PY'
import json, os, sys
state, made_path = sys.argv[1:]

def items(path):
    """kubectl prints one List, one object, several objects, or nothing."""
    text, at, decoder, out = open(path).read(), 0, json.JSONDecoder(), []
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        out += document.get("items", [document]) if document["kind"] == "List" else [document]
    return out

def name(o):
    m = o["metadata"]
    return {"apiVersion": o["apiVersion"], "kind": o["kind"],
            "metadata": {k: m[k] for k in ("name", "namespace") if k in m}}

made = json.load(open(made_path))["items"] if os.path.exists(made_path) else []
existing = [name(o) for o in items(f"{state}/existing.json")]
made += [n for n in map(name, items(f"{state}/wanted.json")) if n not in existing and n not in made]
json.dump({"apiVersion": "v1", "kind": "List", "items": made}, open(made_path, "w"), indent=1)
PY
}

install_system() {
    install_record "$STATE/system.yaml" "$STATE/made-system.json"
    "${KUBECTL[@]}" apply --server-side --force-conflicts -f "$STATE/system.yaml"
    "${KUBECTL[@]}" wait --for=condition=Established --timeout=60s \
        crd/sandboxes.agents.x-k8s.io crd/sandboxclaims.extensions.agents.x-k8s.io \
        crd/sandboxtemplates.extensions.agents.x-k8s.io crd/sandboxwarmpools.extensions.agents.x-k8s.io
}

install_examples() {
    install_record "$STATE/examples.yaml" "$STATE/made-examples.json"
    "${KUBECTL[@]}" apply --server-side --force-conflicts -f "$STATE/examples.yaml"
}

install_wait() {
    local name
    for name in agent-sandbox-controller sandbox-gateway; do
        "${KUBECTL[@]}" -n agent-sandbox-system rollout status "deployment/$name" --timeout=180s
    done
}

# The pool reports as many ready sandboxes as it should have.
install_wait_pool() {
    "${KUBECTL[@]}" -n default wait --timeout=180s --for=jsonpath='{.status.readyReplicas}'=2 \
        sandboxwarmpool/simple-sandbox-warmpool
}

# Removes what install_record wrote down: the examples first, while the controller can still clean up.
install_remove() {
    local list
    for list in "$STATE/made-examples.json" "$STATE/made-system.json"; do
        [ -f "$list" ] || continue
        "${KUBECTL[@]}" delete -f "$list" --ignore-not-found --timeout=120s
        rm -f "$list"
    done
    # The garbage collector takes the pods of a Deployment later than the Deployment. One that was there before stays.
    local label='app in (agent-sandbox-controller, sandbox-router)' kinds
    kinds=$("${KUBECTL[@]}" -n agent-sandbox-system get deployments,pods -l "$label" -o name)
    if [ -n "$kinds" ] && [[ $kinds != *deployment* ]]; then
        "${KUBECTL[@]}" -n agent-sandbox-system wait pods -l "$label" --for=delete --timeout=120s
    fi
}
