"""What elastic pods have reserved of a node, and which nodes have more reserved than their watermark allows."""
