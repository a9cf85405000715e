"""Capacity shared by scaling and smart pods: demand, offerings, and the requests that smart pods make to Karpenter."""
