"""gradekit inside an LMS's container: where each LMS puts files, what it expects back, and what is uploaded to it.

platforms      the paths and limits of each LMS, and how its record is written
autograde      one unattended grading: a failing result first, then the grade
package        what an instructor uploads
lms_commands   the commands for both
"""
