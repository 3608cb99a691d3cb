import pytest

from clients.endpoint import endpoint
from clients.errors import EndpointError


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("grpc://127.0.0.1:8001", "grpc://127.0.0.1:8001"),
        ("grpc://triton", "grpc://triton:8001"),
        ("http://triton", "http://triton:8000"),
        ("http://[::1]:9000/", "http://[::1]:9000"),
    ],
)
def test_endpoint_fills_in_the_port_of_the_scheme(url: str, text: str) -> None:
    assert str(endpoint(url)) == text


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8001",
        "localhost:8001",
        "https://triton",
        "grpc:triton",
        "grpc://",
        "http://triton:70000",
        "http://triton:0",
        "http://triton:x",
        "http://triton/v2",
        "http://user@triton",
        "grpc://triton?x=1",
        "",
    ],
)
def test_endpoint_refuses_what_is_not_just_a_scheme_a_host_and_a_port(url: str) -> None:
    with pytest.raises(EndpointError, match="grpc://host:port or http://host:port is expected"):
        endpoint(url)


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("grpc://localhost:1", True),
        ("grpc://127.0.0.9:1", True),
        ("grpc://[::1]:1", True),
        ("grpc://10.0.0.1:1", False),
        ("grpc://triton:1", False),
    ],
)
def test_is_loopback_goes_by_the_address(url: str, is_loopback: bool) -> None:
    assert endpoint(url).is_loopback is is_loopback
