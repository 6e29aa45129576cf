"""Makes the collection of the roles importable, as Ansible does."""

from pathlib import Path

from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder

ROOT = Path(__file__).resolve().parents[3]
_AnsibleCollectionFinder(paths=[str(ROOT / ".venv" / "collections")])._install()
