"""Imports mosaicml-streaming without the clients of cloud storage that it requires: local files need none of them."""

import importlib.abc
import importlib.machinery
import sys
from unittest import mock

ABSENT = {"transformers", "boto3", "botocore", "paramiko", "google", "azure", "oci", "matplotlib", "snappy", "brotli"}


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces modules that are imported but not used."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


def import_streaming():
    """Returns the module `streaming`; raises ImportError if it or PyTorch is not installed."""
    finder = _Absent()
    sys.meta_path.append(finder)
    try:
        import streaming

        return streaming
    finally:
        # Other libraries check for some of these modules and must not find the replacements.
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] in ABSENT]:
            if isinstance(sys.modules[name], mock.MagicMock):
                del sys.modules[name]
