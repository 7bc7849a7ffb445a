"""The pages whose commands people copy."""
