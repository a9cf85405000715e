"""The status of each policy as it is published: on the object, or in a ConfigMap of ours."""
