"""What is asked of Karpenter by smart pods: read off them, off the machines bought for them, and off who waits."""
