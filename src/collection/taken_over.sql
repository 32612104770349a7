update catchword.installation set previous_id = null
