# SPDX-License-Identifier: Apache-2.0
"""The Python client of MCP, as agents use it."""

import contextlib

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

# What the client can be made to open with: server/discover (its default), initialize, or neither.
MODES = ["auto", "legacy", "2026-07-28"]


@contextlib.asynccontextmanager
async def client(url, token, mode="auto", **options):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # A proxy in the environment is not for a cluster's addresses.
    async with httpx2.AsyncClient(headers=headers, trust_env=False,
                                  timeout=httpx2.Timeout(30, read=300)) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, cache=None, **options) as session:
            yield session
