"""Which environment is meant: the one that was named, the only one, or the one whose guard names the cluster."""

from reconciler.model.desired import Desired
from reconciler.policy.resolve import Resolved


class NotChosen(ValueError):
    """No environment, or several, could be meant; the sentence says what to do."""


def chosen(resolved: Resolved, name: str | None, cluster_uid: str = "", choose_with: str = "--environment") -> Desired:
    """The wish of the environment; where several could be meant, none is taken for granted."""
    names = ", ".join(resolved.environments)
    if name is not None:
        wish = resolved.wish(name)
        if wish is None:
            raise NotChosen(f'there is no environment "{name}"; there are: {names}')
        return wish
    if len(resolved.wishes) == 1:
        return resolved.wishes[0]
    guarding = [wish for wish in resolved.wishes if cluster_uid and _is_for(wish, cluster_uid)]
    if len(guarding) == 1:
        return guarding[0]
    why = f", and {'several name' if guarding else 'no ChangeGuard names'} this cluster (uid {cluster_uid})"
    text = f"there are several environments{why if cluster_uid else ''}"
    raise NotChosen(f"{text}; choose one with {choose_with}: {names}")


def _is_for(wish: Desired, cluster_uid: str) -> bool:
    return any(guard.spec.cluster_uid == cluster_uid for guard in wish.guards)
