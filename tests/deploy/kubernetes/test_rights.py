"""What the pods may do on their machines: nothing that they do not need."""

from __future__ import annotations

from typing import Any

from starter.keys import INFERENCE_KEY


def test_no_container_has_rights_it_does_not_need(objects: dict[str, Any]) -> None:
    pods = [one["spec"]["template"]["spec"] for one in objects.values() if one.get("kind") == "Deployment"]
    assert pods
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == 1000
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert rights["allowPrivilegeEscalation"] is False and rights["readOnlyRootFilesystem"] is True
            assert rights["capabilities"] == {"drop": ["ALL"]} and "privileged" not in rights


def test_the_key_for_running_models_reaches_who_serves_and_who_asks(objects: dict[str, Any]) -> None:
    pods = [one["spec"]["template"]["spec"] for one in objects.values() if one.get("kind") == "Deployment"]
    programs = [container for pod in pods for container in pod["containers"] if container["name"] != "log"]
    keys = [[one["valueFrom"] for one in main["env"] if one["name"] == INFERENCE_KEY] for main in programs]
    secret = {"name": "tritonkit-inference-key", "key": "key", "optional": True}
    assert keys == [[{"secretKeyRef": secret}]] * len(programs) and len(programs) == 3
